package books

import (
	"sync"
	"time"
)

// Retention bounds what stays of forgotten attempts (their logs). The oldest
// go first; attempts that are not forgotten always stay.
type Retention struct {
	Age   time.Duration // since the end; 0 = 24 h
	Bytes int64         // logs of all; 0 = 4 GiB
	Count int           // attempts; 0 = 10,000
}

// WithDefaults fills in the zero fields.
func (r Retention) WithDefaults() Retention {
	if r.Age == 0 {
		r.Age = 24 * time.Hour
	}
	if r.Bytes == 0 {
		r.Bytes = 4 << 30
	}
	if r.Count == 0 {
		r.Count = 10_000
	}
	return r
}

// Kept is a forgotten attempt whose logs stay for a while.
type Kept struct {
	Name  string
	At    time.Time // its end
	Bytes int64     // of its logs
}

// janitor deletes what retention no longer covers, oldest first, beside the
// broker's work.
type janitor struct {
	rules Retention
	drop  func(Kept)
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu    sync.Mutex
	list  []Kept
	bytes int64
}

// startJanitor calls drop, in a goroutine of its own, for what must go.
func startJanitor(rules Retention, drop func(Kept)) *janitor {
	j := &janitor{
		rules: rules, drop: drop,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go j.run()
	return j
}

// add takes over an attempt; it never blocks.
func (j *janitor) add(k Kept) {
	j.mu.Lock()
	j.list = append(j.list, k)
	j.bytes += k.Bytes
	over := j.over(time.Now())
	j.mu.Unlock()
	if over {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
}

// over says that the oldest must go. REQUIRES: j.mu held.
func (j *janitor) over(now time.Time) bool {
	return len(j.list) > 0 && (len(j.list) > j.rules.Count || j.bytes > j.rules.Bytes ||
		now.Sub(j.list[0].At) > j.rules.Age)
}

func (j *janitor) run() {
	defer close(j.done)
	tick := time.NewTicker(min(j.rules.Age, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-j.wake:
		case <-tick.C:
		case <-j.quit:
			return
		}
		for j.dropOldest() {
		}
	}
}

// dropOldest drops one attempt if the rules say so.
func (j *janitor) dropOldest() bool {
	j.mu.Lock()
	if !j.over(time.Now()) {
		j.mu.Unlock()
		return false
	}
	k := j.list[0]
	j.list = j.list[1:]
	j.bytes -= k.Bytes
	j.mu.Unlock()
	j.drop(k)
	return true
}

// close ends its goroutine and waits for it.
func (j *janitor) close() {
	close(j.quit)
	<-j.done
}
