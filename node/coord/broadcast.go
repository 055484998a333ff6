package coord

import (
	"context"
	"sync"
	"time"
)

// Broadcast wakes everyone who waits. The zero value is ready for use.
//
// Take the channel first, look at the condition second, wait third: then no
// change is missed.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{} // nil = nobody waits
}

// Wait returns a channel that the next Fire closes.
func (b *Broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Fire wakes all who took the channel since the last call.
func (b *Broadcast) Fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Signal wakes the reader of a channel of capacity one.
func Signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Sleep waits for so long, or until ctx ends: then it returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
