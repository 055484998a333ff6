package publish

import (
	"cmp"
	"iter"
	"slices"
)

// mostPiece is the greatest number of elements in a piece of a numberList.
const mostPiece = 512

// numberList is an ascending list of numbers in pieces: of hundreds of thousands of held jobs one may leave anywhere,
// as their users take turns, and that moves no more than a piece.
type numberList struct {
	pieces [][]uint64 // Invariant: each has 1 to mostPiece numbers
	n      int
}

// find returns the piece that has a number, or would have it, and the place in it.
func (l *numberList) find(num uint64) (piece, at int) {
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

// add adds n numbers from one on. REQUIRES: none between the first and the last of them is in the list.
func (l *numberList) add(first uint64, n int) {
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

// remove removes n numbers from one on, which are in the list.
func (l *numberList) remove(first uint64, n int) {
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

// first returns the least number.
func (l *numberList) first() (num uint64, ok bool) {
	if len(l.pieces) == 0 {
		return 0, false
	}
	return l.pieces[0][0], true
}

// lastBelow returns the greatest number below another one, 0 = of all.
func (l *numberList) lastBelow(below uint64) (num uint64, ok bool) {
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

// all yields the numbers, ascending.
func (l *numberList) all() iter.Seq[uint64] {
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
