package auth

// Sessions returns how many sessions of browsers there are that have not ended, by their time or with their token.
func (a *Auth) Sessions() (n int) {
	for _, token := range a.sessions.tokens() {
		if a.tokens.Valid(token) {
			n++
		}
	}
	return n
}

// tokens returns the ID of the token of each session whose time is not over.
func (s *sessions) tokens() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, one := range s.open {
		if now.Before(one.ends) {
			ids = append(ids, one.token)
		}
	}
	return ids
}
