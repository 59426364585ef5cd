// The contract of the study: parameters and JSON. Knows neither the server nor the database.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const (
	videoSQL   = "SELECT id, title, channel, duration_s, published_at, thumb_json FROM videos WHERE id = ?"
	relatedSQL = "SELECT id FROM video_related WHERE source_id = ? ORDER BY id LIMIT 8"
	searchSQL  = "SELECT v.id, v.title, v.channel, v.duration_s FROM videos_fts f JOIN videos v ON v.rowid = f.rowid" +
		" WHERE videos_fts MATCH ? ORDER BY f.rank, v.id LIMIT 10"
)

type answer struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Channel    string     `json:"channel"`
	Duration   duration   `json:"duration"`
	Published  published  `json:"published"`
	Thumbnails thumbnails `json:"thumbnails"`
	Related    related    `json:"related"`
}

type duration struct {
	Seconds int    `json:"seconds"`
	Text    string `json:"text"`
}

type published struct {
	At    string `json:"at"`
	Year  int    `json:"year"`
	Month int    `json:"month"`
}

type thumbnails struct {
	Default  thumbnail `json:"default"`
	Medium   thumbnail `json:"medium"`
	High     thumbnail `json:"high"`
	Standard thumbnail `json:"standard"`
	Maxres   thumbnail `json:"maxres"`
}

type thumbnail struct {
	URL    string `json:"url"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

type related struct {
	Count int      `json:"count"`
	IDs   []string `json:"ids"`
}

type results struct {
	Count int      `json:"count"`
	Items []result `json:"items"`
}

type result struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Channel  string `json:"channel"`
	Duration int    `json:"duration_s"`
}

// parameter gives the first value of name in a query string, percent-decoded; empty when it is missing.
func parameter(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if found, value, _ := strings.Cut(pair, "="); found == name {
			return percentDecoded(value)
		}
	}
	return ""
}

// percentDecoded leaves a percent sign that no two hexadecimal digits follow as it is.
func percentDecoded(value string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	decoded := make([]byte, 0, len(value))
	for at := 0; at < len(value); at++ {
		if value[at] == '%' && at+2 < len(value) {
			if octet, err := strconv.ParseUint(value[at+1:at+3], 16, 8); err == nil {
				decoded = append(decoded, byte(octet))
				at += 2
				continue
			}
		}
		decoded = append(decoded, value[at])
	}
	return string(decoded)
}

// durationText gives 1:02:03, or 2:03 below an hour.
func durationText(seconds int) string {
	if hours := seconds / 3600; hours > 0 {
		return fmt.Sprintf("%d:%02d:%02d", hours, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// publishedAt reads year and month of a time such as 2019-03-04T05:06:07Z.
func publishedAt(at string) (published, error) {
	year, err := strconv.Atoi(at[:4])
	if err != nil {
		return published{}, err
	}
	month, err := strconv.Atoi(at[5:7])
	return published{at, year, month}, err
}

// words gives the runs of ASCII letters and digits, each in quotes: a row must have all of them.
func words(query string) string {
	isNone := func(r rune) bool {
		return !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
	}
	all := strings.FieldsFunc(query, isNone)
	for at, word := range all {
		all[at] = `"` + word + `"`
	}
	return strings.Join(all, " ")
}

// encoded gives the JSON text as the other contenders write it: nothing escaped that need not be, no line end.
func encoded(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
