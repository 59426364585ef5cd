// The contract of the study: parameters, token and JSON. Knows neither the server nor the database.

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const (
	key           = "deadheat-trending"
	defaultRegion = "GB"
	defaultLimit  = 24
	largestLimit  = 50
)

type answer struct {
	Region string `json:"region"`
	Count  int    `json:"count"`
	Token  string `json:"token"`
	Items  []item `json:"items"`
}

type item struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Channel string    `json:"channel"`
	Score   int64     `json:"score"`
	Thumbs  [2]string `json:"thumbs"`
}

// ladderItems are what the rung `json` of the ladder encodes: as many items as an answer has, made once.
var ladderItems = func() []item {
	items := make([]item, defaultLimit)
	for n := range items {
		number := strconv.Itoa(n)
		base := "https://thumbs.trending.example/videos/de/la/ladder-" + number + "/still-1/1280x720"
		items[n] = item{
			ID:      "ladder-" + number,
			Title:   "A title that is as long as those of the dataset, number " + number + " (full episode)",
			Channel: "Channel " + number,
			Score:   int64(100_000 - n),
			Thumbs:  [2]string{base + "/hq.webp", base + "/sd.webp"},
		}
	}
	return items
}()

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

// regionOf gives the first two ASCII letters in upper case, or the default when there is none.
func regionOf(value string) string {
	letters := make([]byte, 0, 2)
	for at := 0; at < len(value) && len(letters) < 2; at++ {
		switch octet := value[at]; {
		case 'A' <= octet && octet <= 'Z':
			letters = append(letters, octet)
		case 'a' <= octet && octet <= 'z':
			letters = append(letters, octet-'a'+'A')
		}
	}
	if len(letters) == 0 {
		return defaultRegion
	}
	return string(letters)
}

// limitOf takes a plain decimal integer of 1 or more, clamped to the largest; all else means the default.
func limitOf(value string) int {
	limit := 0
	for at := 0; at < len(value); at++ {
		if value[at] < '0' || '9' < value[at] {
			return defaultLimit
		}
		if limit = limit*10 + int(value[at]-'0'); limit > largestLimit {
			limit = largestLimit
		}
	}
	if limit == 0 {
		return defaultLimit
	}
	return limit
}

// tokenOf gives region.count.minute and the first 16 characters of its HMAC-SHA256 in base64url.
func tokenOf(region string, count int) string {
	message := region + "." + strconv.Itoa(count) + "." + strconv.FormatInt(time.Now().Unix()/60, 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(message))
	return message + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:16]
}

// encoded gives the JSON text as the other contenders write it: nothing escaped that need not be, no line end.
func encoded(value answer) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
