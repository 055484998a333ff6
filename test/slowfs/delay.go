package main

import (
	"bytes"
	"os"
	"time"
)

const (
	// lookEvery is how often a sync that waits reads the file again, so that a
	// disk that was switched back to fast frees what hangs in it.
	lookEvery = 10 * time.Millisecond
	// maxDelay bounds what a file can ask for: a caller in a sync cannot be killed.
	maxDelay = 10 * time.Minute
)

// delay is how much longer each sync takes now: the duration in a file.
type delay struct{ path string }

// read returns the file's duration. ok is false for a file that is missing, empty
// or no duration: whoever writes it may be halfway.
func (d delay) read() (long time.Duration, ok bool) {
	text, err := os.ReadFile(d.path)
	if err != nil {
		return 0, false
	}
	long, err = time.ParseDuration(string(bytes.TrimSpace(text)))
	return min(max(long, 0), maxDelay), err == nil
}

// wait returns once the delay has passed since the call, however often it changes
// meanwhile. It heeds no interrupt, as a disk does not: callers get no EINTR that
// no real fsync would give them.
func (d delay) wait() {
	began := time.Now()
	long, _ := d.read()
	for {
		left := long - time.Since(began)
		if left <= 0 {
			return
		}
		<-time.After(min(left, lookEvery))
		if now, ok := d.read(); ok {
			long = now
		}
	}
}
