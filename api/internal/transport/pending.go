package transport

import "sync"

// Pending is a bounded buffer between two stages.
type Pending[T any] struct {
	mu        sync.Mutex
	changed   *sync.Cond
	buf       []T
	used      int // size of buf
	most      int
	closed    bool // no more will come
	abandoned bool // nobody takes any more
}

// NewPending makes one with room for items of so much size together.
func NewPending[T any](most int) *Pending[T] {
	p := &Pending[T]{most: most}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// Add adds items of a size once there is room; false means that nobody takes them.
func (p *Pending[T]) Add(size int, items ...T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) > 0 && p.used+size > p.most && !p.abandoned {
		p.changed.Wait()
	}
	if len(p.buf) == 0 {
		p.changed.Broadcast()
	}
	p.buf, p.used = append(p.buf, items...), p.used+size
	return !p.abandoned
}

// Drain waits until all items were taken, or nobody takes any more.
func (p *Pending[T]) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) > 0 && !p.abandoned {
		p.changed.Wait()
	}
}

// TakeAll waits for items and returns all there are; more is false on the last.
func (p *Pending[T]) TakeAll() (items []T, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.closed {
		p.changed.Wait()
	}
	items, p.buf, p.used = p.buf, nil, 0
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
