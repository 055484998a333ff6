package outputs

import (
	"fmt"
	"os"
)

// Sweep removes what is over the bounds, as happens by itself some time.
func (s *Store) Sweep() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.closed {
		s.sweep()
	}
}

// sweep removes the segments that are too old, and the oldest ones as long as all
// together are too large. REQUIRES: s.writing held.
func (s *Store) sweep() {
	s.readAgain()
	if s.file != nil { // an output must not stay because nothing comes after it
		g := s.segments[len(s.segments)-1]
		if now := s.cfg.Now(); g.count > 0 && now.UnixMilli()-g.first > s.span().Milliseconds() {
			s.seal()
		}
	}
	for {
		g, byAge := s.dueSegment()
		if g == nil {
			return
		}
		s.removeSegment(g, byAge)
	}
}

// dueSegment returns a segment that is to go, nil = none. REQUIRES: s.writing held.
func (s *Store) dueSegment() (due *segment, byAge bool) {
	oldest := s.cfg.Now().Add(-s.cfg.Keep).UnixMilli()
	var charge int64
	for _, g := range s.segments {
		if g.count > 0 && g.last < oldest {
			return g, true
		}
		charge += g.charge
	}
	if charge > s.max {
		return s.segments[0], false
	}
	return nil, false
}

// removeSegment removes a segment and all that belongs to it. A crash after any step
// leaves what the next start removes, or reads as it was.
func (s *Store) removeSegment(g *segment, byAge bool) {
	if s.file != nil && g == s.segments[len(s.segments)-1] {
		s.seal()
	}
	_, entries, err := s.folder.readIndex(fileOf(g.number, indexExt))
	whole := err == nil
	if !whole { // the disk was full, or is damaged
		entries = s.entriesOf(g)
	}
	apart, _ := s.folder.apartOf(g, entries) // what is missed are strays for the next start
	s.forget(g, entries, whole)
	r := removed{number: g.number, byAge: byAge, at: s.cfg.Now()}
	if whole {
		r.prints = printsOf(entries)
	}
	err = s.folder.at().Rename(fileOf(g.number, indexExt), r.name())
	s.folder.remove(fileOf(g.number, segmentExt))
	for _, name := range apart {
		s.folder.remove(name)
	}
	s.count(g, r, err == nil)
	s.forgetRemoved()
}

// count notes a removed segment, and that its index stays if it does.
func (s *Store) count(g *segment, r removed, remembered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if remembered {
		s.removed = append(s.removed, r)
	}
	if r.byAge {
		s.byAge += uint64(g.count)
	} else {
		s.byBytes += uint64(g.count)
	}
}

// entriesOf reads a segment that has no index.
func (s *Store) entriesOf(g *segment) []entry {
	f, err := s.folder.open(fileOf(g.number, segmentExt), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	// without them its large files are strays for the next start
	_, entries, _ := s.scanSegment(f, g.number, g.salt, g.size)
	return entries
}

// forget takes a segment and its outputs out of the index.
func (s *Store) forget(g *segment, entries []entry, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.segments {
		if other == g {
			s.segments = append(s.segments[:i:i], s.segments[i+1:]...)
			break
		}
	}
	for _, e := range entries {
		if place, ok := s.index[e.key]; ok && uint32(place>>32) == g.number {
			delete(s.index, e.key)
		}
	}
	if whole {
		return
	}
	for key, place := range s.index { // its index was lost
		if uint32(place>>32) == g.number {
			delete(s.index, key)
		}
	}
}

// apartNames returns those of all segments. REQUIRES: nobody else yet.
func (s *Store) apartNames() (map[string]bool, error) {
	if s.unreadBy != nil {
		return nil, s.unreadBy
	}
	names := map[string]bool{}
	for _, g := range s.segments {
		entries := s.entries
		if s.file == nil || g != s.segments[len(s.segments)-1] {
			var err error
			if _, entries, err = s.folder.readIndex(fileOf(g.number, indexExt)); err != nil && g.apart > 0 {
				return nil, fmt.Errorf("read an index of kept outputs: %w", err)
			}
		}
		list, err := s.folder.apartOf(g, entries)
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			names[name] = true
		}
	}
	return names, nil
}
