package linear

import (
	"slices"
	"sync"
	"time"
)

// History collects operations; it is safe for concurrent use.
type History struct {
	now func() time.Duration

	mu  sync.Mutex
	ops []Op
}

// NewHistory makes one with a monotonic clock.
func NewHistory(now func() time.Duration) *History { return &History{now: now} }

// Call begins an operation. Its outcome is unknown until Return.
func (h *History) Call(o Op) *Pending {
	o.Answered = false
	o.Call = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
	return &Pending{h, len(h.ops) - 1}
}

// All returns a copy of the operations so far, in order of their calls.
func (h *History) All() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ops)
}

// Pending is an operation that was begun.
type Pending struct {
	history *History
	n       int
}

// Return ends the operation with an answer, which answer writes down.
func (p *Pending) Return(answer func(*Op)) {
	now := p.history.now()
	p.history.mu.Lock()
	defer p.history.mu.Unlock()
	o := &p.history.ops[p.n]
	answer(o)
	o.Answered, o.Return = true, now
}

// Now returns the time of the history's clock.
func (h *History) Now() time.Duration { return h.now() }

// Saw records a read that began at call and ends now.
func (h *History) Saw(call time.Duration, o Op) {
	o.Answered, o.Call, o.Return = true, call, h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}
