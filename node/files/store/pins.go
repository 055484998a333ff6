package store

import (
	"iter"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// released is when an outgoing blob was used whose last pin went: it is due at once, after a restart, too.
var released = time.Unix(0, 0)

// Pin has blobs stay until Unpin of the same name, and returns those that are not there (whole and not known to be
// damaged). They are pinned, too: what is filled or put later stays as well. More pins of a name add to the earlier
// ones.
//
// Pins are in memory: the caller has them in its journal, and says them again by Repin.
func (s *Store) Pin(by string, refs ...Ref) (missing []Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range refs {
		s.pin(by, k)
		if e := s.entries[slot{key: k}]; e == nil || e.damaged {
			missing = append(missing, k)
		}
	}
	return missing
}

// Unpin ends all pins of a name; without any it does nothing.
func (s *Store) Unpin(by string) {
	s.mu.Lock()
	touched := s.unpin(by)
	s.mu.Unlock()
	s.touch(touched)
}

// HeldBy returns how many bytes count that nothing but pins of these names keeps, each given once.
func (s *Store) HeldBy(names ...string) (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[key]int{}
	for _, by := range names {
		for k := range s.pinners[by] {
			held[k]++
			if e := s.entries[slot{key: k}]; e != nil && held[k] == s.pins[k] {
				bytes += charge(e.size)
			}
		}
	}
	return bytes
}

// Repin replaces all pins, each given by its name and a blob, and returns the blobs that are not there. The caller says
// it once after Open: only then anything is removed.
func (s *Store) Repin(pins iter.Seq2[string, Ref]) (missing []Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.pins
	s.pins, s.pinners = map[key]int{}, map[string]map[key]struct{}{}
	s.forgetPinned()
	for k := range before {
		s.settleKey(k)
	}
	for by, k := range pins {
		s.pin(by, k)
	}
	for k := range s.sizes {
		s.settlePromise(k)
	}
	for k := range s.pins {
		if e := s.entries[slot{key: k}]; e == nil || e.damaged {
			missing = append(missing, k)
		}
	}
	s.pinned = true
	return missing
}

// PinsSaid says what Repin does of pins that were made one by one since Open, while others make theirs: whatever is to
// stay is pinned, and from now on other blobs may go.
func (s *Store) PinsSaid() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned = true
}

// pin adds a pin. REQUIRES: s.mu held.
func (s *Store) pin(by string, k key) {
	of := s.pinners[by]
	if of == nil {
		of = map[key]struct{}{}
		s.pinners[by] = of
	}
	if _, ok := of[k]; ok {
		return
	}
	of[k] = struct{}{}
	s.pins[k]++
	s.settleKey(k)
	if e := s.entries[slot{key: k}]; e != nil {
		s.countPinned(by, e)
	}
}

// unpin ends the pins of a name and returns what is used otherwise by that. REQUIRES: s.mu held.
func (s *Store) unpin(by string) (touched []*entry) {
	for k := range s.pinners[by] {
		if s.pins[k]--; s.pins[k] > 0 {
			continue
		}
		delete(s.pins, k)
		if e := s.entries[slot{key: k}]; e != nil && k.Space != Own {
			e.used = s.now()
			if k.Space == Outgoing {
				e.used = released
			}
			touched = append(touched, e)
		}
		s.settleKey(k)
		s.settlePromise(k)
	}
	delete(s.pinners, by)
	s.countUnpinned(by)
	return touched
}

// Missing returns which of a place's blobs are not there, and has the others stay for Limit.Keep from now on: who asks
// is about to name them.
func (s *Store) Missing(at Place, hashes ...files.Hash) (missing []files.Hash) {
	now := s.now()
	var touched []*entry
	s.mu.Lock()
	for _, h := range hashes {
		e := s.entries[slot{key: key{at, h}}]
		if e == nil || e.damaged {
			missing = append(missing, h)
			continue
		}
		e.used = now
		s.settle(e)
		touched = append(touched, e)
	}
	s.mu.Unlock()
	s.touch(touched)
	return missing
}

// Sizes returns the sizes of a place's blobs, -1 of each that is not there; the others stay as Missing has them stay.
func (s *Store) Sizes(at Place, hashes ...files.Hash) []int64 {
	gone := map[files.Hash]bool{}
	for _, h := range s.Missing(at, hashes...) {
		gone[h] = true
	}
	sizes := make([]int64, len(hashes))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, h := range hashes {
		sizes[i] = -1
		if e := s.entries[slot{key: key{at, h}}]; e != nil && !gone[h] {
			sizes[i] = e.size
		}
	}
	return sizes
}

// touch notes on the disk when whole blobs were used last.
func (s *Store) touch(entries []*entry) {
	for _, e := range entries {
		s.mu.Lock()
		used, gone := e.used, e.gone
		s.mu.Unlock()
		if !gone {
			s.disk.touch(fileOf(e.key), used)
		}
	}
}
