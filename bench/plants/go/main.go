// A server whose slowdown is known: see ../server.mjs for the variables of the environment.
package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"math/bits"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

// The work of a request. Its result is part of the answer, except 0.
type work func() int

var requests atomic.Uint64

func option(name string, usual float64) float64 {
	text, ok := os.LookupEnv(name)
	if !ok {
		return usual
	}
	value, err := strconv.ParseFloat(text, 64)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var works []work
	for _, of := range []func() work{spinning, querying, holding, recording, calling, following, leaking} {
		if one := of(); one != nil {
			works = append(works, one)
		}
	}
	tail := uint64(option("TAIL", 0))
	tailWait := milliseconds(option("TAIL_MS", 0))
	sleep(milliseconds(option("START_MS", 0)))
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		number := requests.Add(1)
		results := []int{}
		for _, one := range works {
			if found := one(); found != 0 {
				results = append(results, found)
			}
		}
		body, err := json.Marshal(map[string]any{"message": "hello", "results": results})
		check(err)
		if tail > 0 && number%tail == 0 {
			time.Sleep(tailWait)
		}
		response.Header().Set("content-type", "application/json")
		_, _ = response.Write(body)
	})
	check(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

func milliseconds(count float64) time.Duration {
	return time.Duration(count * float64(time.Millisecond))
}

// By the system call: time.Sleep is only precise to a millisecond.
func sleep(wait time.Duration) {
	left := syscall.NsecToTimespec(int64(wait))
	for wait > 0 && syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

func spinning() work {
	steps := option("SPIN", 0)
	if steps == 0 {
		return nil
	}
	if slowStart() {
		steps *= option("SLOW", 1)
	}
	warming, slowing := option("WARMING", 0), option("SLOWING", 0)
	return func() int {
		number, now := float64(requests.Load()), steps
		if slowing > 0 {
			now *= 1 + number/slowing
		}
		if warming > 0 {
			now /= 1 + number/warming
		}
		return spin(int(now + 0.5))
	}
}

// xorshift. The answer must not depend on the number of steps.
func spin(steps int) int {
	x := uint32(1)
	for range steps {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
	}
	if x == 0 {
		return 1
	}
	return 0
}

// Whether this start is one of the slow ones: see server.mjs.
func slowStart() bool {
	name := os.Getenv("STARTS")
	if name == "" {
		return false
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	check(err)
	_, err = file.WriteString(".")
	check(err)
	facts, err := file.Stat()
	check(err)
	return bits.OnesCount64(uint64(facts.Size()-1))%2 == 1
}

func querying() work {
	count := int(option("QUERIES", 0))
	if count == 0 {
		return nil
	}
	database, err := sql.Open("sqlite3", ":memory:")
	check(err)
	// Each connection would have a database of its own.
	database.SetMaxOpenConns(1)
	_, err = database.Exec(`CREATE TABLE items (id INTEGER PRIMARY KEY, score INTEGER);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO items SELECT i, i * 7 FROM n`)
	check(err)
	query, err := database.Prepare("SELECT sum(score) AS total FROM items WHERE score % 3 <> ?")
	check(err)
	return func() int {
		total := 0
		for range count {
			check(query.QueryRow(1).Scan(&total))
		}
		return total
	}
}

func holding() work {
	hold := milliseconds(option("HOLD_MS", 0))
	if hold == 0 {
		return nil
	}
	var lock sync.Mutex
	return func() int {
		lock.Lock()
		defer lock.Unlock()
		sleep(hold)
		return 0
	}
}

type record struct {
	id, score int
	text      string
	next      *record
}

func recording() work {
	count := int(option("RECORDS", 0))
	if count == 0 {
		return nil
	}
	fresh := option("FRESH", 0) > 0
	blank := func() []*record {
		records := make([]*record, count)
		for id := range records {
			records[id] = new(record)
		}
		return records
	}
	own, alive := blank(), make([][]*record, 8)
	for place := range alive {
		alive[place] = blank()
	}
	var lock sync.Mutex
	return func() int {
		lock.Lock()
		defer lock.Unlock()
		records := own
		if fresh {
			records = make([]*record, count)
		}
		var next *record
		total := 0
		for id := range records {
			if fresh {
				records[id] = &record{id, id * 7, "text", next}
			} else {
				*records[id] = record{id, id * 7, "text", next}
			}
			next = records[id]
			total += next.score
		}
		if fresh {
			alive[requests.Load()%uint64(len(alive))] = records
		}
		return total
	}
}

func calling() work {
	count := int(option("SYSCALLS", 0))
	if count == 0 {
		return nil
	}
	file, err := syscall.Open("/dev/urandom", syscall.O_RDONLY, 0)
	check(err)
	buffers := sync.Pool{New: func() any { return make([]byte, 16_384) }}
	return func() int {
		buffer := buffers.Get().([]byte)
		defer buffers.Put(buffer)
		read := 0
		for range count {
			var err error
			read, err = syscall.Read(file, buffer)
			check(err)
		}
		return read
	}
}

func following() work {
	steps := int(option("STEPS", 0))
	if steps == 0 {
		return nil
	}
	ring := linked(int(option("RING_KB", 0)))
	var last atomic.Int32
	return func() int {
		at := last.Load()
		for range steps {
			at = ring[at]
		}
		last.Store(at)
		return min(int(at), 0)
	}
}

// One number in each line of 64 bytes: see server.mjs.
func linked(kilobytes int) []int32 {
	lines := int32(kilobytes * 1024 / 64)
	ring := make([]int32, lines*16)
	line := int32(0)
	for range lines {
		next := (line*1_664_525 + 1_013_904_223) & (lines - 1)
		ring[line*16] = next * 16
		line = next
	}
	return ring
}

func leaking() work {
	count := int(option("LEAK_BYTES", 0))
	if count == 0 {
		return nil
	}
	const block = 4_194_304
	filling := bytes.Repeat([]byte{1}, count)
	var lock sync.Mutex
	var left []byte
	return func() int {
		lock.Lock()
		defer lock.Unlock()
		if len(left) < count {
			// Outside of the collector's heap, which would grow by twice as much.
			var err error
			left, err = syscall.Mmap(-1, 0, block, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			check(err)
		}
		copy(left, filling)
		left = left[count:]
		return 0
	}
}
