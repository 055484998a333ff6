package transport

import "sync"

// Pending is a bounded buffer between two stages.
type Pending[T any] struct {
	mu        sync.Mutex
	changed   *sync.Cond
	buf       []T
	most      int
	closed    bool // no more will come
	abandoned bool // nobody takes any more
}

// NewPending makes one with room for most items.
func NewPending[T any](most int) *Pending[T] {
	p := &Pending[T]{most: most}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// Add adds items once there is room; false means that nobody takes them.
func (p *Pending[T]) Add(items ...T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) > 0 && len(p.buf)+len(items) > p.most && !p.abandoned {
		p.changed.Wait()
	}
	if len(p.buf) == 0 {
		p.changed.Broadcast()
	}
	p.buf = append(p.buf, items...)
	return !p.abandoned
}

// TakeAll waits for items and returns all there are; more is false on the last.
func (p *Pending[T]) TakeAll() (items []T, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.closed {
		p.changed.Wait()
	}
	items, p.buf = p.buf, nil
	p.changed.Broadcast()
	return items, !p.closed
}

// Close says that no more will come.
func (p *Pending[T]) Close() { p.set(&p.closed) }

// Abandon says that nobody takes any more.
func (p *Pending[T]) Abandon() { p.set(&p.abandoned) }

func (p *Pending[T]) set(flag *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*flag = true
	p.changed.Broadcast()
}
