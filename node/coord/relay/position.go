package relay

import (
	"context"
	"sync"
)

// Position is the index of the last entry that a member's machine has behind it.
// The zero value is ready for use.
type Position struct {
	mu      sync.Mutex
	at      uint64
	waiting map[chan struct{}]uint64
}

// Now returns the index.
func (p *Position) Now() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// Advance moves it forward, never back.
func (p *Position) Advance(to uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = max(p.at, to)
	for ch, want := range p.waiting {
		if want <= p.at {
			close(ch)
			delete(p.waiting, ch)
		}
	}
}

// Wait returns once the position has reached index, or with the context's cause.
func (p *Position) Wait(ctx context.Context, index uint64) error {
	p.mu.Lock()
	if p.at >= index {
		p.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	if p.waiting == nil {
		p.waiting = map[chan struct{}]uint64{}
	}
	p.waiting[ch] = index
	p.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waiting, ch)
		p.mu.Unlock()
		return context.Cause(ctx)
	}
}
