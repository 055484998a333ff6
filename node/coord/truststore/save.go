package truststore

import (
	"slices"
	"time"
)

// grewTo reports whether another roster of the federation has the same members, and behind them none, as when one has
// registered for the first time, or more who do not vote.
func (r Roster) grewTo(next Roster) bool {
	n := len(r.Members)
	if n == 0 || n > len(next.Members) || r.Federation != next.Federation {
		return false
	}
	elects := func(m Entry) bool { return m.Elector }
	return slices.Equal(r.Members, next.Members[:n]) && !slices.ContainsFunc(next.Members[n:], elects)
}

// OnUnsaved has a function told why a roster that only grew could not be written. It is to be called before Update.
func (s *Store) OnUnsaved(f func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = f
}

// Flush writes the roster in force, unless the file holds it.
func (s *Store) Flush() error {
	s.mu.Lock()
	if s.behind != nil {
		s.behind.Stop()
		s.behind = nil
	}
	s.mu.Unlock()
	return s.save()
}

// saveLater has the roster in force written within saveWait. REQUIRES: s.mu held.
func (s *Store) saveLater() {
	if s.behind == nil {
		s.behind = time.AfterFunc(saveWait, s.saveBehind)
	}
}

func (s *Store) saveBehind() {
	s.mu.Lock()
	s.behind = nil
	unsaved := s.unsaved
	s.mu.Unlock()
	if err := s.save(); err != nil && unsaved != nil {
		unsaved(err)
	}
}

// save writes the roster in force, unless the file holds it.
func (s *Store) save() error {
	s.file.Lock()
	defer s.file.Unlock()
	now := s.now.Load()
	if now == s.written {
		return nil
	}
	err := save(s.path, now.Roster)
	if err == nil {
		s.written = now
	}
	return err
}

// replace writes a roster, and then puts it in force. REQUIRES: s.mu held.
func (s *Store) replace(v *view) error {
	s.file.Lock()
	defer s.file.Unlock()
	if err := save(s.path, v.Roster); err != nil {
		return err
	}
	s.written = v
	s.now.Store(v)
	return nil
}
