// Contenders `go` and `go-encoder`: net/http with bytes prepared once, or with encoding/json for each request.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type message struct {
	Message string `json:"message"`
}

var contentType = []string{"application/json"}

func main() {
	text := "Hello from " + os.Getenv("HELLO_NAME")
	handler := prepared(text)
	if len(os.Args) > 1 && os.Args[1] == "encoder" {
		handler = encoder(text)
	}
	// In a container behind a bridge, and over a link, it listens elsewhere.
	host := os.Getenv("HOST")
	if host == "" {
		host = "127.0.0.1"
	}
	// No timeouts: a contender may be frozen between two slices of load.
	server := http.Server{Addr: host + ":" + os.Getenv("PORT"), Handler: handler}
	if cert, key := os.Getenv("CERT"), os.Getenv("KEY"); cert != "" && key != "" {
		log.Fatal(server.ListenAndServeTLS(cert, key))
	}
	log.Fatal(server.ListenAndServe())
}

// prepared answers with bytes that were made at the start.
func prepared(text string) http.HandlerFunc {
	body, err := json.Marshal(message{text})
	if err != nil {
		log.Fatal(err)
	}
	return func(response http.ResponseWriter, request *http.Request) {
		response.Header()["Content-Type"] = contentType
		if request.URL.Path != "/json" {
			notFound(response)
			return
		}
		// A failed write means that the client is gone; the server closes the connection itself.
		_, _ = response.Write(body)
	}
}

// encoder writes the text anew for each request; its line end is one that JSON allows.
func encoder(text string) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		response.Header()["Content-Type"] = contentType
		if request.URL.Path != "/json" {
			notFound(response)
			return
		}
		_ = json.NewEncoder(response).Encode(message{text})
	}
}

func notFound(response http.ResponseWriter) {
	response.WriteHeader(http.StatusNotFound)
	_, _ = response.Write([]byte(`{"error":"not found"}`))
}
