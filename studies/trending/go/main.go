// Contender `go`: net/http and database/sql with the SQLite driver mattn/go-sqlite3.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"

	_ "github.com/mattn/go-sqlite3"
)

const query = "SELECT id, title, channel, score, thumb_base FROM videos" +
	" WHERE region = ? ORDER BY score DESC, id LIMIT ?"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serialize" {
		if err := serialize(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	statement, err := prepare(os.Getenv("TRENDING_DB"))
	if err != nil {
		log.Fatal(err)
	}
	// No timeouts: a contender may be frozen between two slices of load.
	server := http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: trending{statement}}
	log.Fatal(server.ListenAndServe())
}

// prepare opens the database at path for reading only, with one connection per core, and prepares the query.
func prepare(path string) (*sql.Stmt, error) {
	source := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	source.RawQuery = "mode=ro&_query_only=1&_busy_timeout=5000&_mutex=no"
	database, err := sql.Open("sqlite3", source.String())
	if err != nil {
		return nil, err
	}
	cores := runtime.GOMAXPROCS(0)
	database.SetMaxOpenConns(cores)
	database.SetMaxIdleConns(cores)
	return database.PrepareContext(context.Background(), query)
}

type trending struct{ statement *sql.Stmt }

// ServeHTTP answers GET /api/trending and knows no other path.
func (t trending) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	headers := response.Header()
	headers["Content-Type"] = []string{"application/json"}
	if request.URL.EscapedPath() != "/api/trending" {
		t.rung(response, request)
		return
	}
	region := regionOf(parameter(request.URL.RawQuery, "region"))
	items, err := t.items(request.Context(), region, limitOf(parameter(request.URL.RawQuery, "limit")))
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := encoded(answer{region, len(items), tokenOf(region, len(items)), items})
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	headers["Cache-Control"] = []string{"public, max-age=30, s-maxage=120"}
	send(response, http.StatusOK, body)
}

// rung answers a rung of the ladder: the server alone, with JSON, or with the query as well. Without a token.
func (t trending) rung(response http.ResponseWriter, request *http.Request) {
	items := ladderItems
	switch request.URL.EscapedPath() {
	case "/ladder/nothing":
		send(response, http.StatusOK, []byte("{}"))
		return
	case "/ladder/json":
	case "/ladder/query":
		found, err := t.items(request.Context(), "DE", defaultLimit)
		if err != nil {
			http.Error(response, err.Error(), http.StatusInternalServerError)
			return
		}
		items = found
	default:
		send(response, http.StatusNotFound, []byte(`{"error":"not found"}`))
		return
	}
	body, err := encoded(answer{"DE", len(items), "", items})
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	send(response, http.StatusOK, body)
}

func (t trending) items(ctx context.Context, region string, limit int) ([]item, error) {
	rows, err := t.statement.QueryContext(ctx, region, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	items := make([]item, 0, limit)
	for rows.Next() {
		var one item
		var thumbBase string
		if err := rows.Scan(&one.ID, &one.Title, &one.Channel, &one.Score, &thumbBase); err != nil {
			return nil, err
		}
		one.Thumbs = [2]string{thumbBase + "/hq.webp", thumbBase + "/sd.webp"}
		items = append(items, one)
	}
	return items, rows.Err()
}

func send(response http.ResponseWriter, status int, body []byte) {
	response.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	response.WriteHeader(status)
	// A failed write means that the client is gone; the server closes the connection itself.
	_, _ = response.Write(body)
}
