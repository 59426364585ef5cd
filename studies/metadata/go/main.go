// Contender `go`: net/http and database/sql with the SQLite driver mattn/go-sqlite3.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"

	"github.com/mattn/go-sqlite3"
)

func main() {
	database, err := open(os.Getenv("METADATA_DB"))
	if err != nil {
		log.Fatal(err)
	}
	metadata, err := newMetadata(database)
	if err != nil {
		log.Fatal(err)
	}
	// No timeouts: a contender may be frozen between two slices of load.
	server := http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: metadata}
	log.Fatal(server.ListenAndServe())
}

// open opens the database at path for reading only, with one connection per core.
func open(path string) (*sql.DB, error) {
	sql.Register("sqlite3_mapped", &sqlite3.SQLiteDriver{ConnectHook: func(connection *sqlite3.SQLiteConn) error {
		_, err := connection.Exec("PRAGMA mmap_size = 268435456", nil)
		return err
	}})
	source := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	source.RawQuery = "mode=ro&_query_only=1&_busy_timeout=5000&_mutex=no"
	database, err := sql.Open("sqlite3_mapped", source.String())
	if err != nil {
		return nil, err
	}
	cores := runtime.GOMAXPROCS(0)
	database.SetMaxOpenConns(cores)
	database.SetMaxIdleConns(cores)
	return database, nil
}

// lookups are the two statements of a lookup.
type lookups struct{ video, related *sql.Stmt }

type metadata struct {
	database *sql.DB
	once     lookups
	search   *sql.Stmt
}

func newMetadata(database *sql.DB) (*metadata, error) {
	once, err := prepareLookups(context.Background(), database)
	if err != nil {
		return nil, err
	}
	search, err := database.Prepare(searchSQL)
	return &metadata{database, once, search}, err
}

// preparer is a database or one of its connections.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func prepareLookups(ctx context.Context, on preparer) (lookups, error) {
	video, err := on.PrepareContext(ctx, videoSQL)
	if err != nil {
		return lookups{}, err
	}
	related, err := on.PrepareContext(ctx, relatedSQL)
	return lookups{video, related}, err
}

// ServeHTTP answers GET of /, /anew and /search.
func (m *metadata) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	var value any
	var err error
	ctx, query := request.Context(), request.URL.RawQuery
	switch request.URL.EscapedPath() {
	case "/":
		value, err = m.once.find(ctx, parameter(query, "id"))
	case "/anew":
		value, err = m.findAnew(ctx, parameter(query, "id"))
	case "/search":
		value, err = m.find(ctx, parameter(query, "q"))
	}
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && value == nil:
		send(response, http.StatusNotFound, []byte("null"))
	case err != nil:
		http.Error(response, err.Error(), http.StatusInternalServerError)
	default:
		body, err := encoded(value)
		if err != nil {
			http.Error(response, err.Error(), http.StatusInternalServerError)
			return
		}
		send(response, http.StatusOK, body)
	}
}

// findAnew prepares both statements for this request alone, on one connection.
func (m *metadata) findAnew(ctx context.Context, id string) (any, error) {
	connection, err := m.database.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	anew, err := prepareLookups(ctx, connection)
	if err != nil {
		return nil, err
	}
	defer anew.video.Close()
	defer anew.related.Close()
	return anew.find(ctx, id)
}

func (l lookups) find(ctx context.Context, id string) (any, error) {
	var one answer
	var at, thumbs string
	row := l.video.QueryRowContext(ctx, id)
	if err := row.Scan(&one.ID, &one.Title, &one.Channel, &one.Duration.Seconds, &at, &thumbs); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(thumbs), &one.Thumbnails); err != nil {
		return nil, err
	}
	var err error
	if one.Published, err = publishedAt(at); err != nil {
		return nil, err
	}
	one.Duration.Text = durationText(one.Duration.Seconds)
	rows, err := l.related.QueryContext(ctx, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids := make([]string, 0, 8)
	for rows.Next() {
		var other string
		if err := rows.Scan(&other); err != nil {
			return nil, err
		}
		ids = append(ids, other)
	}
	one.Related = related{len(ids), ids}
	return one, rows.Err()
}

func (m *metadata) find(ctx context.Context, query string) (any, error) {
	found := results{Items: []result{}}
	match := words(query)
	if match == "" {
		return found, nil
	}
	rows, err := m.search.QueryContext(ctx, match)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one result
		if err := rows.Scan(&one.ID, &one.Title, &one.Channel, &one.Duration); err != nil {
			return nil, err
		}
		found.Items = append(found.Items, one)
	}
	found.Count = len(found.Items)
	return found, rows.Err()
}

func send(response http.ResponseWriter, status int, body []byte) {
	response.Header()["Content-Type"] = []string{"application/json"}
	response.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	response.WriteHeader(status)
	// A failed write means that the client is gone; the server closes the connection itself.
	_, _ = response.Write(body)
}
