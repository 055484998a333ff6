package store

// Heap is a binary heap. It serves what container/heap does, but puts no entry on Go's
// heap by itself.
type Heap[T any] struct {
	Before func(a, b *T) bool // reports whether a leaves before b; no two may be equal
	Moved  func(x T, to int)  // is told each place that an entry takes, −1 as it leaves; may be nil
	items  []T
}

// Len returns the number of entries.
func (h *Heap[T]) Len() int { return len(h.items) }

// First returns the entry that leaves first.
//
// REQUIRES: there is one.
func (h *Heap[T]) First() *T { return &h.items[0] }

// At returns the entry at a place: after the one at (i−1)/2.
func (h *Heap[T]) At(i int) *T { return &h.items[i] }

// Clear takes all entries out, and tells nobody.
func (h *Heap[T]) Clear() { h.items = h.items[:0] }

// Push enters an entry.
func (h *Heap[T]) Push(x T) {
	h.items = append(h.items, x)
	h.lift(len(h.items) - 1)
}

// Pop takes the first entry out.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove takes out the entry at a place.
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

// Fix puts the entry at a place where it belongs after it has changed.
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

// sink moves an entry toward the last, and reports whether it did.
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
