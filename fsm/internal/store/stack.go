package store

// Stack is a stack of numbers. It grows in pieces: an array of millions would be copied as a whole in the
// entry that fills it.
type Stack struct {
	pieces []*[MostPiece]uint64 // at most one more than needed
	n      int
}

// Push adds a number.
func (s *Stack) Push(v uint64) {
	if s.n/MostPiece == len(s.pieces) {
		s.pieces = append(s.pieces, new([MostPiece]uint64))
	}
	s.pieces[s.n/MostPiece][s.n%MostPiece] = v
	s.n++
}

// Pop removes the latest number and returns it; ok is false if there is none.
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
