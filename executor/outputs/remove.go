package outputs

import (
	"errors"
	"os"

	"github.com/cloudshare/cloudshare/executor"
)

// maxRemoved bounds the removed segments that are remembered: two million outputs at
// most, 25 MiB.
const maxRemoved = 256

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
	if s.file != nil { // an output must not stay because nothing comes after it
		g := s.segments[len(s.segments)-1]
		if now := s.cfg.Now(); g.count > 0 && now.UnixMilli()-g.first > s.span().Milliseconds() {
			s.seal()
		}
	}
	for {
		g, byAge := s.due()
		if g == nil {
			return
		}
		s.removeSegment(g, byAge)
	}
}

// due returns a segment that is to go, nil = none. REQUIRES: s.writing held.
func (s *Store) due() (due *segment, byAge bool) {
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
	_, entries, whole := s.readIndex(g.number)
	if !whole { // the disk was full, or is damaged
		entries = s.entriesOf(g)
	}
	apart := s.apartOf(g, entries)
	s.forget(g, entries, whole)
	r := removed{g.number, byAge, s.cfg.Now()}
	err := s.dir().Rename(fileOf(g.number, indexExt), r.name())
	s.removeFile(fileOf(g.number, segmentExt))
	for _, name := range apart {
		s.removeFile(name)
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
	f, err := s.openFile(fileOf(g.number, segmentExt), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	_, entries, _ := s.scanSegment(f, g.number, g.salt, g.size) // without them its large files are strays for the next start
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

// forgetRemoved forgets what was removed the longest ago.
// REQUIRES: s.writing held, or nobody else yet.
func (s *Store) forgetRemoved() {
	s.mu.Lock()
	over := s.removed[:max(len(s.removed)-maxRemoved, 0)]
	s.removed = s.removed[len(over):]
	s.mu.Unlock()
	for _, r := range over {
		s.removeFile(r.name())
	}
}

// apartOf returns the files of a segment's streams that have their own.
func (s *Store) apartOf(g *segment, entries []entry) (names []string) {
	if g.apart == 0 {
		return nil
	}
	f, err := s.openFile(fileOf(g.number, segmentExt), os.O_RDONLY)
	if err != nil {
		return nil // they are strays for the next start
	}
	defer f.Close()
	for _, e := range entries {
		h, err := readHead(f, g.salt, int64(e.off))
		for n, apart := range h.apart {
			if err == nil && apart {
				names = append(names, apartName(h.id, n))
			}
		}
	}
	return names
}

// apartNames returns those of all segments. REQUIRES: nobody else yet.
func (s *Store) apartNames() (map[string]bool, error) {
	names := map[string]bool{}
	for _, g := range s.segments {
		entries := s.entries
		if s.file == nil || g != s.segments[len(s.segments)-1] {
			var ok bool
			if _, entries, ok = s.readIndex(g.number); !ok && g.apart > 0 {
				return nil, errors.New("an index of kept outputs cannot be read")
			}
		}
		for _, name := range s.apartOf(g, entries) {
			names[name] = true
		}
	}
	return names, nil
}

// Removed returns why and when an attempt's output was removed, false if that is not
// remembered.
func (s *Store) Removed(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	key := keyOf(job, task, attempt)
	s.mu.RLock()
	list := append([]removed{}, s.removed...)
	s.mu.RUnlock()
	for i := len(list) - 1; i >= 0; i-- {
		if s.wasIn(list[i], key) {
			return executor.OutputRemoval{ByAge: list[i].byAge, At: list[i].at}, true
		}
	}
	return executor.OutputRemoval{}, false
}

func (s *Store) wasIn(r removed, key uint64) bool {
	f, err := s.openFile(r.name(), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	return err == nil && searchIndex(f, st.Size(), key)
}
