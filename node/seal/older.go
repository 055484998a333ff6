package seal

// NewOf returns the sealer of a site that has replaced its secret: the first one seals, the others open what was sealed
// with them. Which one it was the payload's mark says.
func NewOf(secrets []Secret, whose Whose) *Sealer {
	s := New(secrets[0], whose)
	for _, older := range secrets[1:] {
		s.older = append(s.older, New(older, whose))
	}
	return s
}

// olderKey returns the key of a payload by a secret of before.
func (s *Sealer) olderKey(p *parts) (Key, error) {
	for _, o := range s.older {
		if key := o.keyOf(p.id); key.Opens(p.mark) {
			return key, nil
		}
	}
	return Key{}, ErrOtherSecret
}

// Secrets returns how many secrets the sealer has.
func (s *Sealer) Secrets() int { return 1 + len(s.older) }

// Place returns by which of the secrets a payload was sealed, 0 = the one that seals now. Errors: ErrNotSealed,
// ErrOtherSecret.
func (s *Sealer) Place(payload []byte) (int, error) {
	p, err := parse(payload)
	if err != nil {
		return 0, err
	}
	for n := range s.Secrets() {
		of := s
		if n > 0 {
			of = s.older[n-1]
		}
		if key := of.keyOf(p.id); key.Opens(p.mark) {
			return n, nil
		}
	}
	return 0, ErrOtherSecret
}
