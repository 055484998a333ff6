package core

import "errors"

// checkLists compares what the lists go by with what it is counted from.
func (s *rigSite) checkLists() {
	s.rig.t.Helper()
	if err := errors.Join(s.core.pubs.Check(), s.core.home.Check()); err != nil {
		s.rig.t.Fatal(err)
	}
}
