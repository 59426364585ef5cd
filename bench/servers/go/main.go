// A server for races whose answer is known: the same work for every request, and SPIN steps more.
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

var state atomic.Uint32

// Marsaglia's xorshift, so that nothing can be left out.
func work(steps int) {
	word := state.Load() | 1
	for range steps {
		word ^= word << 13
		word ^= word >> 17
		word ^= word << 5
	}
	state.Store(word)
}

func main() {
	spin, _ := strconv.Atoi(os.Getenv("SPIN"))
	tail, _ := strconv.ParseUint(os.Getenv("TAIL"), 10, 64)
	tailMs, _ := strconv.ParseFloat(os.Getenv("TAIL_MS"), 64)
	var requests atomic.Uint64
	items := make([]item, 200)
	for id := range items {
		items[id] = item{id, "title " + strconv.Itoa(id), id * 7}
	}
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		body, _ := json.Marshal(map[string]any{"count": len(items), "items": items})
		work(spin)
		if number := requests.Add(1); tail > 0 && number%tail == 0 {
			time.Sleep(time.Duration(tailMs * float64(time.Millisecond)))
		}
		response.Header().Set("content-type", "application/json")
		_, _ = response.Write(body)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil); err != nil {
		panic(err)
	}
}
