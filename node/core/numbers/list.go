// Package numbers has ascending lists of the numbers of jobs.
package numbers

import (
	"cmp"
	"iter"
	"slices"
)

// mostPiece is the greatest number of elements in a piece of a List.
const mostPiece = 512

// List is an ascending list of numbers in pieces: of hundreds of thousands of held jobs one may leave anywhere,
// as their users take turns, and that moves no more than a piece.
type List struct {
	pieces [][]uint64 // Invariant: each has 1 to mostPiece numbers
	n      int
}

// Len returns how many numbers there are.
func (l *List) Len() int { return l.n }

// find returns the piece that has a number, or would have it, and the place in it.
func (l *List) find(num uint64) (piece, at int) {
	first := func(p []uint64, num uint64) int { return cmp.Compare(p[0], num) }
	piece, found := slices.BinarySearchFunc(l.pieces, num, first)
	if !found && piece > 0 {
		piece--
	}
	if piece < len(l.pieces) {
		at, _ = slices.BinarySearch(l.pieces[piece], num)
	}
	return piece, at
}

// Add adds n numbers from one on. REQUIRES: none between the first and the last of them is in the list.
func (l *List) Add(first uint64, n int) {
	l.n += n
	piece, at := l.find(first)
	var rest []uint64 // of that piece, behind the new ones
	if piece < len(l.pieces) {
		rest = slices.Clone(l.pieces[piece][at:])
		l.pieces[piece] = l.pieces[piece][:at]
	} else {
		l.pieces = append(l.pieces, nil)
	}
	p, more := l.pieces[piece], [][]uint64(nil)
	put := func(num uint64) {
		if len(p) == mostPiece {
			more = append(more, p)
			p = make([]uint64, 0, mostPiece)
		}
		p = append(p, num)
	}
	for i := range n {
		put(first + uint64(i))
	}
	for _, num := range rest {
		put(num)
	}
	l.pieces[piece] = p
	l.pieces = slices.Insert(l.pieces, piece, more...)
}

// Remove removes n numbers from one on, which are in the list.
func (l *List) Remove(first uint64, n int) {
	l.n -= n
	for piece, at := l.find(first); n > 0; at = 0 {
		p := l.pieces[piece]
		out := min(n, len(p)-at)
		if n -= out; out == len(p) {
			l.pieces = slices.Delete(l.pieces, piece, piece+1)
			continue
		}
		l.pieces[piece] = slices.Delete(p, at, at+out)
		piece++
	}
}

// First returns the least number.
func (l *List) First() (num uint64, ok bool) {
	if len(l.pieces) == 0 {
		return 0, false
	}
	return l.pieces[0][0], true
}

// LastBelow returns the greatest number below another one, 0 = of all.
func (l *List) LastBelow(below uint64) (num uint64, ok bool) {
	if len(l.pieces) == 0 {
		return 0, false
	}
	piece, at := len(l.pieces)-1, len(l.pieces[len(l.pieces)-1])
	if below > 0 {
		piece, at = l.find(below)
	}
	if at == 0 { // only what is below all numbers is before the first of its piece
		if piece == 0 {
			return 0, false
		}
		piece--
		at = len(l.pieces[piece])
	}
	return l.pieces[piece][at-1], true
}

// All yields the numbers, ascending.
func (l *List) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, p := range l.pieces {
			for _, num := range p {
				if !yield(num) {
					return
				}
			}
		}
	}
}
