package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// The measure `serialize`: how long it takes to write the 24-item answer as JSON a million times.
const serializeTimes = 1_000_000

// serialize times it over the file at path, the answer as JSON, and prints one line.
func serialize(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var read answer
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if body, err := encoded(read); err != nil || string(body) != string(text) {
		return errors.Join(err, errors.New("the answer is not written as it was read"))
	}
	begin, sum := time.Now(), 0
	for turn := 0; turn < serializeTimes; turn++ {
		body, err := encoded(read)
		if err != nil {
			return err
		}
		sum += len(body)
	}
	seconds := time.Since(begin).Seconds()
	if sum != len(text)*serializeTimes {
		return errors.New("not every turn wrote the answer")
	}
	fmt.Printf("{\"value\": %g, \"unit\": \"s\"}\n", seconds)
	return nil
}
