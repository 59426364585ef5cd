// A server for races whose answer is known: 201 items as JSON, and MORE items more: see server.mjs.
// TAIL: every so many requests one waits TAIL_MS before its answer.
package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

type item struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Score int    `json:"score"`
}

func main() {
	more, _ := strconv.ParseFloat(os.Getenv("MORE"), 64)
	tail, _ := strconv.ParseUint(os.Getenv("TAIL"), 10, 64)
	tailMs, _ := strconv.ParseFloat(os.Getenv("TAIL_MS"), 64)
	var requests, owed atomic.Uint64
	thousandths := uint64(more * 1000)
	items := make([]item, 202+int(more+1))
	for id := range items {
		items[id] = item{id, "title " + strconv.Itoa(id), id * 7}
	}
	written := func(count uint64) []byte {
		body, _ := json.Marshal(map[string]any{"count": 200, "items": items[:count]})
		return body
	}
	sent := len(written(200))
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		// Of a part of an item a whole one is written now and then. Everybody cuts off what follows the 200th.
		all := owed.Add(thousandths)
		extra := all/1000 - (all-thousandths)/1000
		body := written(201 + extra)[:sent]
		if number := requests.Add(1); tail > 0 && number%tail == 0 {
			time.Sleep(time.Duration(tailMs * float64(time.Millisecond)))
		}
		response.Header().Set("content-type", "application/json")
		_, _ = response.Write(body)
	})
	host := os.Getenv("HOST")
	if host == "" {
		host = "127.0.0.1"
	}
	if err := http.ListenAndServe(host+":"+os.Getenv("PORT"), nil); err != nil {
		panic(err)
	}
}
