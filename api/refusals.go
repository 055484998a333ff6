package api

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/audit"
)

const (
	// refusalWindow is in what time recordedRefusals of one user are recorded, each by itself.
	refusalWindow    = time.Minute
	recordedRefusals = 10
)

// refusals keep one user's flood of refused requests from displacing the record: the first ones within a window are
// recorded, the others are counted, and the count is recorded at its end.
type refusals struct {
	write func(audit.Entry)

	mu     sync.Mutex
	counts map[string]*refusalCount // of this window, by whom a request counts for; guarded by mu
	end    *time.Timer              // of the window, nil = none has begun; guarded by mu
}

type refusalCount struct {
	n    int
	more audit.Entry // the latest that was only counted
}

// admit reports whether a refusal is to be recorded by itself. Otherwise it is counted.
func (f *refusals) admit(whose string, e audit.Entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		f.counts = map[string]*refusalCount{}
		f.end = time.AfterFunc(refusalWindow, f.flush)
	}
	c := f.counts[whose]
	if c == nil {
		c = &refusalCount{}
		f.counts[whose] = c
	}
	c.n++
	if c.n <= recordedRefusals {
		return true
	}
	c.more = e
	return false
}

// flush ends the window, and records what was counted.
func (f *refusals) flush() {
	f.mu.Lock()
	counts := f.counts
	if f.end != nil {
		f.end.Stop()
	}
	f.counts, f.end = nil, nil
	f.mu.Unlock()
	for _, c := range counts {
		if more := c.n - recordedRefusals; more > 0 {
			c.more.More = more
			f.write(c.more)
		}
	}
}
