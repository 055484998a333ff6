package store

import (
	"iter"
	"slices"
)

// MostPiece is the greatest number of elements in a piece of a sorted list.
const MostPiece = 512

// Sorted is a list whose order its callers know. A long list is kept in pieces, so that a change in the
// middle of millions moves little: one entry may cause ten thousand such changes. The zero value is
// empty; a nil list reads as empty.
type Sorted[T any] struct {
	last []T        // the last piece; appended to. Invariant: empty only if the list is
	many *pieces[T] // the pieces before it, nil = none
}

// pieces are all pieces of a long list except the last.
type pieces[T any] struct {
	list [][]T // Invariant: not empty, and each piece has 1 to MostPiece elements
	n    int
}

// Place is a place in a list: an element, or the end.
type Place struct{ piece, at int }

// Len returns the number of elements.
func (l *Sorted[T]) Len() int {
	switch {
	case l == nil:
		return 0
	case l.many == nil:
		return len(l.last)
	}
	return l.many.n + len(l.last)
}

// InPieces reports whether the list is kept in pieces.
func (l *Sorted[T]) InPieces() bool { return l.many != nil }

// before returns the number of pieces before the last one.
func (l *Sorted[T]) before() int {
	if l.many == nil {
		return 0
	}
	return len(l.many.list)
}

// piece returns the i-th piece.
func (l *Sorted[T]) piece(i int) []T {
	if i == l.before() {
		return l.last
	}
	return l.many.list[i]
}

// First returns the first element, or nil.
func (l *Sorted[T]) First() *T { return l.Get(Place{}) }

// Final returns the last element, or nil.
func (l *Sorted[T]) Final() *T {
	if len(l.last) == 0 {
		return nil
	}
	return &l.last[len(l.last)-1]
}

// Get returns the element at a place, nil at the end or before the beginning.
func (l *Sorted[T]) Get(at Place) *T {
	if l == nil {
		return nil
	}
	p := l.piece(at.piece)
	if at.at < 0 || at.at >= len(p) {
		return nil
	}
	return &p[at.at]
}

// End returns the place behind the last element.
func (l *Sorted[T]) End() Place {
	if l == nil {
		return Place{}
	}
	return Place{l.before(), len(l.last)}
}

// Prev returns the place before one. If that was the first, Get finds nil there.
func (l *Sorted[T]) Prev(at Place) Place {
	if at.at == 0 && at.piece > 0 {
		return Place{at.piece - 1, len(l.many.list[at.piece-1]) - 1}
	}
	return Place{at.piece, at.at - 1}
}

// Search returns the place of the first element for which past holds. past must not hold for any
// element before it and must hold for all behind it.
func (l *Sorted[T]) Search(past func(*T) bool) Place {
	switch {
	case l == nil:
		return Place{}
	case l.many == nil:
		return Place{0, searchPiece(l.last, past)}
	case !past(&l.last[len(l.last)-1]):
		return l.End()
	}
	list := l.many.list
	if past(&list[0][0]) {
		return Place{}
	}
	if p := list[len(list)-1]; !past(&p[len(p)-1]) {
		return Place{len(list), searchPiece(l.last, past)}
	}
	i, k := 0, len(list)-1 // the piece is one of [i, k]
	for i < k {
		mid := int(uint(i+k) / 2)
		if p := list[mid]; past(&p[len(p)-1]) {
			k = mid
		} else {
			i = mid + 1
		}
	}
	return Place{i, searchPiece(list[i], past)}
}

// searchPiece is Search in one piece. Usually the place is behind all of it, or the first.
func searchPiece[T any](p []T, past func(*T) bool) int {
	n := len(p)
	switch {
	case n == 0 || !past(&p[n-1]):
		return n
	case past(&p[0]):
		return 0
	}
	i, k := 1, n-1
	for i < k {
		mid := int(uint(i+k) / 2)
		if past(&p[mid]) {
			k = mid
		} else {
			i = mid + 1
		}
	}
	return i
}

// Insert inserts an element before a place, or at the end.
func (l *Sorted[T]) Insert(at Place, v T) {
	n := l.before()
	switch {
	case at.piece < n:
		l.many.insert(at, v)
	case len(l.last) < MostPiece:
		l.last = slices.Insert(l.last, at.at, v)
	default: // the last piece is full
		if l.many == nil {
			l.many = &pieces[T]{}
		}
		l.many.list = append(l.many.list, l.last)
		l.many.n += len(l.last)
		l.last = make([]T, 0, MostPiece)
		if at.at == MostPiece { // elements usually come in order
			l.last = append(l.last, v)
			return
		}
		tail := l.many.split(n)
		l.many.n -= len(tail)
		l.last = append(l.last, tail...)
		if at.at <= MostPiece/2 {
			l.many.insert(at, v)
			return
		}
		l.last = slices.Insert(l.last, at.at-MostPiece/2, v)
	}
}

// split takes the second half out of a full piece. The caller must read the result before it writes to
// the piece.
func (m *pieces[T]) split(i int) []T {
	p := m.list[i]
	half := len(p) / 2
	tail := slices.Clone(p[half:])
	clear(p[half:])
	m.list[i] = p[:half]
	return tail
}

func (m *pieces[T]) insert(at Place, v T) {
	m.n++
	if len(m.list[at.piece]) == MostPiece {
		tail := m.split(at.piece)
		m.list = slices.Insert(m.list, at.piece+1, tail)
		if half := MostPiece / 2; at.at > half {
			at = Place{at.piece + 1, at.at - half}
		}
	}
	m.list[at.piece] = slices.Insert(m.list[at.piece], at.at, v)
}

// Remove removes the element at a place.
func (l *Sorted[T]) Remove(at Place) {
	m := l.many
	if n := l.before(); at.piece < n {
		m.n--
		if m.list[at.piece] = cutOut(m.list[at.piece], at.at); len(m.list[at.piece]) == 0 {
			m.list = cutOut(m.list, at.piece)
		}
	} else if l.last = cutOut(l.last, at.at); len(l.last) == 0 && n > 0 {
		l.last = m.list[n-1]
		m.n -= len(l.last)
		m.list[n-1] = nil
		m.list = m.list[:n-1]
	}
	if m != nil && len(m.list) == 0 {
		l.many = nil
	}
}

// cutOut removes one element in place and moves the shorter side: usually the first element is removed.
func cutOut[T any](p []T, k int) []T {
	if k >= len(p)/2 {
		return slices.Delete(p, k, k+1)
	}
	copy(p[1:k+1], p[:k])
	clear(p[:1])
	return p[1:]
}

// From yields the elements from a place on, for reading only.
func (l *Sorted[T]) From(at Place) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		if l == nil {
			return
		}
		for i := at.piece; i <= l.before(); i++ {
			p := l.piece(i)
			for k := at.at; k < len(p); k++ {
				if !yield(&p[k]) {
					return
				}
			}
			at.at = 0
		}
	}
}

// All yields the elements in order, for reading only.
func (l *Sorted[T]) All() iter.Seq[*T] { return l.From(Place{}) }

// Rank returns how many elements are before a place.
func (l *Sorted[T]) Rank(at Place) int {
	n := at.at
	for i := range at.piece {
		n += len(l.many.list[i])
	}
	return n
}

// Nth returns the place behind the first n elements. If there are no more, Get finds nil there.
func (l *Sorted[T]) Nth(n int) Place {
	for i := range l.before() {
		p := l.many.list[i]
		if n < len(p) {
			return Place{i, n}
		}
		n -= len(p)
	}
	return Place{l.before(), n}
}

// Sort sorts all elements; equal elements keep their order.
func (l *Sorted[T]) Sort(compare func(a, b T) int) {
	all := make([]T, 0, l.Len())
	for v := range l.All() {
		all = append(all, *v)
	}
	slices.SortStableFunc(all, compare)
	*l = Sorted[T]{}
	for _, v := range all {
		l.Insert(l.End(), v)
	}
}

// Sample yields every step-th of the first n elements, for reading only.
func (l *Sorted[T]) Sample(n, step int) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		at := 0 // the next one to yield, counted from the beginning of the piece
		for i := range l.before() + 1 {
			p := l.piece(i)
			for ; at < min(n, len(p)); at += step {
				if !yield(&p[at]) {
					return
				}
			}
			at, n = at-len(p), n-len(p)
		}
	}
}

// Clone returns a list that shares nothing with l.
func (l *Sorted[T]) Clone() Sorted[T] {
	out := Sorted[T]{last: slices.Clone(l.last)}
	if l.many != nil {
		out.many = &pieces[T]{list: make([][]T, len(l.many.list)), n: l.many.n}
		for i, p := range l.many.list {
			out.many.list[i] = slices.Clone(p)
		}
	}
	return out
}
