package core

import "errors"

// checkLists compares what the lists go by with what it is counted from.
func (s *rigSite) checkLists() {
	s.rig.t.Helper()
	c := s.core
	if err := errors.Join(
		c.pubs.Check(), c.home.Check(), c.after.Check(), c.gates.Check(), c.priorities.Check(),
	); err != nil {
		s.rig.t.Fatal(err)
	}
	held := map[string]uint64{}
	for num := range s.core.pubs.Numbers() {
		if p := s.core.pubs.Find(num); p.Held {
			held[p.User] += uint64(p.Spec.Count)
		}
	}
	for _, u := range s.core.Users() {
		if u.Held != held[u.User] {
			s.rig.t.Fatalf("%d tasks of %s are held, counted are %d", held[u.User], u.User, u.Held)
		}
	}
}
