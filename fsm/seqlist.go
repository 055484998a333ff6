package fsm

import (
	"iter"
	"slices"
	"sort"
)

// seqList is sorted numbers of jobs. It is kept in pieces, so that a change in the middle
// of millions moves little.
type seqList struct {
	pieces [][]uint64 // Invariant: none is empty, or longer than mostSeqs
}

// mostSeqs is how many numbers a piece has at most.
const mostSeqs = 512

// find returns the piece that holds a number, or would: one that is there, unless there
// are none.
func (l *seqList) find(seq uint64) int {
	i := sort.Search(len(l.pieces), func(i int) bool { return l.pieces[i][0] > seq })
	return max(0, i-1)
}

// insert enters a number that is not there.
func (l *seqList) insert(seq uint64) {
	if len(l.pieces) == 0 {
		l.pieces = [][]uint64{{seq}}
		return
	}
	i := l.find(seq)
	p := l.pieces[i]
	k, _ := slices.BinarySearch(p, seq)
	switch {
	case len(p) < mostSeqs:
		l.pieces[i] = slices.Insert(p, k, seq)
	case k == len(p): // as a rule they come in order
		l.pieces = slices.Insert(l.pieces, i+1, []uint64{seq})
	default:
		half := slices.Clone(p[mostSeqs/2:])
		l.pieces[i] = p[:mostSeqs/2]
		l.pieces = slices.Insert(l.pieces, i+1, half)
		l.insert(seq)
	}
}

// remove takes out a number that is there.
func (l *seqList) remove(seq uint64) {
	i := l.find(seq)
	k, _ := slices.BinarySearch(l.pieces[i], seq)
	if l.pieces[i] = slices.Delete(l.pieces[i], k, k+1); len(l.pieces[i]) == 0 {
		l.pieces = slices.Delete(l.pieces, i, i+1)
	}
}

// from yields the numbers from one on. They must not be changed meanwhile.
func (l *seqList) from(seq uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := l.find(seq); i < len(l.pieces); i++ {
			k, _ := slices.BinarySearch(l.pieces[i], seq)
			for _, v := range l.pieces[i][k:] {
				if !yield(v) {
					return
				}
			}
		}
	}
}
