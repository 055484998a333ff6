package transport

import (
	"sync/atomic"
	"time"
)

// seldom says when something may be logged again that strangers cause as often as they like: every ten seconds.
type seldom struct {
	until atomic.Int64 // Unix nanoseconds
}

// now reports whether it may be logged now.
func (s *seldom) now() bool {
	now, until := time.Now(), s.until.Load()
	return now.UnixNano() >= until && s.until.CompareAndSwap(until, now.Add(10*time.Second).UnixNano())
}
