package store

import "fmt"

// promises keep room for what is to come, so that no two who each fit alone fill a space or the disk together. They are
// in memory, and are made again at a start by who has made them.
//
// A blob that several wait for counts once, and no more from the moment at which it is in the index, whole or partial:
// then it counts as used. Of bytes that are expected what their name has pinned in their space counts no more.
type promises struct {
	// sizes has the blobs for which room was reserved. Invariant: each is pinned.
	sizes map[key]int64
	// coming is what of sizes counts: those that are not there. Invariant: no zeros.
	coming map[key]int64
	// expected has the bytes that were reserved by name.
	expected map[string]*expectation
	// promised is the sum of coming and of what is open of expected. Invariant: not negative.
	promised [spaces]int64
}

// expectation is of bytes whose hashes nobody knows yet.
type expectation struct {
	space Space
	bytes int64
	came  int64 // pinned by the name, in the space
}

func (x *expectation) open() int64 { return max(x.bytes-x.came, 0) }

func newPromises() promises {
	return promises{sizes: map[key]int64{}, coming: map[key]int64{}, expected: map[string]*expectation{}}
}

// expect has bytes count. REQUIRES: s.mu held, and none of the name do.
func (s *Store) expect(by string, space Space, n int64) {
	x := &expectation{space: space, bytes: charge(n)}
	for k := range s.pinners[by] {
		if e := s.entries[slot{key: k}]; e != nil && k.Space == space {
			x.came += charge(e.size)
		}
	}
	s.expected[by] = x
	s.promised[space] += x.open()
}

// evictable returns what of the cache may go. REQUIRES: s.mu held.
func (s *Store) evictable() int64 {
	if !s.pinned {
		return 0
	}
	return s.unheld[Cache]
}

// left returns what a space has room for, with what may go for it. REQUIRES: s.mu held.
func (s *Store) left(space Space) int64 {
	n := s.limits[space].Max - s.used[space]
	if space == Cache {
		n += s.evictable()
	}
	return n
}

// allPromised returns what promises may take of the disk. Own tasks are promised what they ask for, and no more comes
// than their quota has left. REQUIRES: s.mu held.
func (s *Store) allPromised() int64 {
	own := min(s.promised[Own], max(s.left(Own), 0))
	return own + s.promised[Cache] + s.promised[Outgoing]
}

// hasRoom returns why n more bytes of a space cannot be promised, kept of them being no room that may go. Nothing needs
// no room. REQUIRES: s.mu held.
func (s *Store) hasRoom(space Space, n, kept, free int64) error {
	if n == 0 {
		return nil
	}
	all := s.allPromised()
	left := s.left(space) - s.promised[space]
	disk := free + s.evictable() - all
	if space == Cache {
		left -= kept
	}
	disk -= kept
	short := &ShortError{Space: space, Bytes: n, kept: kept, Lacks: n - min(left, disk)}
	switch {
	case n > left:
		short.why = fmt.Sprintf("no room for %d bytes more: %d are left of data.%s, %d of them promised to tasks that run",
			n, max(left+s.promised[space], 0), space, s.promised[space])
	case n > disk:
		short.why = fmt.Sprintf("no room for %d bytes more: the disk has %d above min_free, %d of them promised to tasks "+
			"that run", n, max(disk+all, 0), all)
	default:
		return nil
	}
	return short
}

// evictPromised has of the cache go what the disk does not have beside it, some steps at most. REQUIRES: s.mu held,
// which it gives up meanwhile.
func (s *Store) evictPromised(free int64) {
	over := s.allPromised() - free
	if over <= 0 {
		return
	}
	s.mu.Unlock()
	s.evictAll(over) // what cannot go is tried again when the disk is full
	s.mu.Lock()
}

// mayGo returns what an entry has that is free to go. REQUIRES: s.mu held.
func (s *Store) mayGo(e *entry) int64 {
	if e == nil || e.pos < 0 {
		return 0
	}
	return charge(e.size)
}

// settlePromise has a blob count as promised if it is to come. REQUIRES: s.mu held.
func (x *index) settlePromise(k key) {
	size, known := x.sizes[k]
	if known && x.pins[k] == 0 {
		delete(x.sizes, k)
		known = false
	}
	n := int64(0)
	if known && x.entries[slot{key: k}] == nil && x.entries[slot{k, true}] == nil {
		n = charge(size)
	}
	x.promised[k.Space] += n - x.coming[k]
	if x.coming[k] = n; n == 0 {
		delete(x.coming, k)
	}
}

// countPinned has a blob count as one that a name expected. REQUIRES: s.mu held; it is not pinned by it before.
func (x *index) countPinned(by string, e *entry) {
	w := x.expected[by]
	if w == nil || e.Space != w.space {
		return
	}
	x.promised[w.space] -= w.open()
	w.came += charge(e.size)
	x.promised[w.space] += w.open()
}

// countUnpinned says that nothing of what a name expected is pinned by it any more. REQUIRES: s.mu held.
func (x *index) countUnpinned(by string) {
	if w := x.expected[by]; w != nil {
		x.promised[w.space] += w.bytes - w.open()
		w.came = 0
	}
}

// forgetPinned is countUnpinned of all names. REQUIRES: s.mu held.
func (x *index) forgetPinned() {
	for by := range x.expected {
		x.countUnpinned(by)
	}
}
