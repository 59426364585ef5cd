// A load generator as articles write it: net/http, each of N goroutines asks and waits for its answer.
//
//	http-load URL CONNECTIONS SECONDS
//
// Prints one JSON line: requests, seconds, throughput_rps, failed.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type result struct {
	Requests      int     `json:"requests"`
	Seconds       float64 `json:"seconds"`
	ThroughputRps float64 `json:"throughput_rps"`
	Failed        int     `json:"failed"`
}

func main() {
	if len(os.Args) != 4 {
		fail("usage: http-load URL CONNECTIONS SECONDS")
	}
	connections, err := strconv.Atoi(os.Args[2])
	if err != nil || connections < 1 {
		fail("CONNECTIONS is a whole number of at least 1")
	}
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	if err != nil || seconds <= 0 {
		fail("SECONDS is a number above 0")
	}
	line, err := json.Marshal(load(os.Args[1], connections, time.Duration(seconds*float64(time.Second))))
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(string(line))
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, "http-load: "+why)
	os.Exit(2)
}

func load(url string, connections int, length time.Duration) result {
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true},
	}
	each(connections, func(int) { ask(client, url) }) // connections are opened before the clock runs
	times := make([][]time.Duration, connections)
	failed := make([]int, connections)
	begin := time.Now()
	each(connections, func(worker int) {
		for time.Since(begin) < length {
			asked := time.Now()
			if ask(client, url) {
				times[worker] = append(times[worker], time.Since(asked))
			} else {
				failed[worker]++
			}
		}
	})
	took := time.Since(begin).Seconds()
	all := result{Seconds: took}
	for worker := range times {
		all.Requests += len(times[worker])
		all.Failed += failed[worker]
	}
	all.ThroughputRps = float64(all.Requests) / took
	return all
}

func each(connections int, work func(worker int)) {
	var group sync.WaitGroup
	for worker := 0; worker < connections; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			work(worker)
		}(worker)
	}
	group.Wait()
}

// ask reports whether a whole answer of status 200 came.
func ask(client *http.Client, url string) bool {
	answer, err := client.Get(url)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK
}
