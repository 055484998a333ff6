package store

// Heap is a binary heap. Unlike container/heap it does not allocate its entries one by one.
type Heap[T any] struct {
	Before func(a, b *T) bool // reports whether a leaves before b; no two may be equal
	Moved  func(x T, to int)  // is called with each place that an entry takes, −1 as it leaves; may be nil
	items  []T
}

// Len returns the number of entries.
func (h *Heap[T]) Len() int { return len(h.items) }

// First returns the entry that leaves first.
//
// REQUIRES: there is one.
func (h *Heap[T]) First() *T { return &h.items[0] }

// At returns the entry at a place: it leaves after the one at (i−1)/2.
func (h *Heap[T]) At(i int) *T { return &h.items[i] }

// Clear removes all entries without calling Moved.
func (h *Heap[T]) Clear() { h.items = h.items[:0] }

// Push adds an entry.
func (h *Heap[T]) Push(x T) {
	h.items = append(h.items, x)
	h.lift(len(h.items) - 1)
}

// Pop removes the first entry and returns it.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove removes the entry at a place and returns it.
func (h *Heap[T]) Remove(i int) T {
	x, last := h.items[i], len(h.items)-1
	h.items[i] = h.items[last]
	var none T
	h.items[last] = none
	if h.items = h.items[:last]; i < last {
		h.Fix(i)
	}
	h.moved(x, -1)
	return x
}

// Fix moves the entry at a place to where it belongs after it has changed.
func (h *Heap[T]) Fix(i int) {
	if !h.sink(i) {
		h.lift(i)
	}
}

// lift moves an entry toward the first.
func (h *Heap[T]) lift(i int) {
	x := h.items[i]
	for i > 0 && h.Before(&x, &h.items[(i-1)/2]) {
		h.put(i, h.items[(i-1)/2])
		i = (i - 1) / 2
	}
	h.put(i, x)
}

// sink moves an entry toward the last and reports whether it moved.
func (h *Heap[T]) sink(i int) bool {
	from, x := i, h.items[i]
	for k := 2*i + 1; k < len(h.items); k = 2*i + 1 {
		if k+1 < len(h.items) && h.Before(&h.items[k+1], &h.items[k]) {
			k++
		}
		if !h.Before(&h.items[k], &x) {
			break
		}
		h.put(i, h.items[k])
		i = k
	}
	if i > from {
		h.put(i, x)
	}
	return i > from
}

func (h *Heap[T]) put(i int, x T) {
	h.items[i] = x
	h.moved(x, i)
}

func (h *Heap[T]) moved(x T, to int) {
	if h.Moved != nil {
		h.Moved(x, to)
	}
}
