package store

// Stack is numbers, last in, first out. It grows by pieces: an array of millions would
// be copied whole, in the entry in which it is full.
type Stack struct {
	pieces []*[MostPiece]uint64 // at most one that is not needed now
	n      int
}

// Push enters a number.
func (s *Stack) Push(v uint64) {
	if s.n/MostPiece == len(s.pieces) {
		s.pieces = append(s.pieces, new([MostPiece]uint64))
	}
	s.pieces[s.n/MostPiece][s.n%MostPiece] = v
	s.n++
}

// Pop returns the latest number; false: there is none.
func (s *Stack) Pop() (v uint64, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	s.n--
	if last := len(s.pieces) - 1; last > s.n/MostPiece+1 {
		s.pieces[last] = nil
		s.pieces = s.pieces[:last]
	}
	return s.pieces[s.n/MostPiece][s.n%MostPiece], true
}
