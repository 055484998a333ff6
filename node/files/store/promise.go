package store

import (
	"math"

	"github.com/cloudshare/cloudshare/node/files"
)

// Unbounded is how much is free of a disk that nobody watches.
const Unbounded = math.MaxInt64 / 2

// ShortError says that there is no room for what was to be reserved. It is ErrFull.
type ShortError struct {
	Space Space
	Lacks int64 // for so many of Bytes there was no room
	Bytes int64 // that were asked for, in blocks
	// kept is what was there of what was asked for and may go: it makes no room for the rest. Once it has gone the rest
	// is more by as much, and once it is pinned there is less to go: what fits stays the same.
	kept int64
	why  string
}

// Error implements error.
func (e *ShortError) Error() string { return e.why }

// Unwrap returns ErrFull.
func (e *ShortError) Unwrap() error { return ErrFull }

// Reserve pins blobs as Pin does, and keeps room in their space and on the disk for those that are not there, until
// Unpin of the name. free is how many bytes the disk has beyond what must stay free; unpinned blobs of the cache go if
// that takes them. Errors: *ShortError, and nothing is pinned or reserved then.
func (s *Store) Reserve(by string, at Place, blobs []files.Blob, free int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	need, kept := int64(0), int64(0) // kept may go now, and may not if it is pinned
	fresh := map[key]int64{}
	for _, b := range blobs {
		k := key{at, b.Hash}
		if _, met := fresh[k]; met {
			continue
		}
		fresh[k] = b.Size
		switch e, part := s.entries[slot{key: k}], s.entries[slot{k, true}]; {
		case e == nil && part == nil && s.coming[k] == 0:
			need += charge(b.Size)
		default:
			kept += s.mayGo(e) + s.mayGo(part)
		}
	}
	if err := s.hasRoom(at.Space, need, kept, free); err != nil {
		return err
	}
	for k, size := range fresh {
		s.pin(by, k)
		s.sizes[k] = size
		s.settlePromise(k)
	}
	if need > 0 { // what is here already takes nothing
		s.evictPromised(free)
	}
	return nil
}

// ReserveBytes keeps room for n bytes of a space whose blobs are to be pinned by a name, until Release. What is pinned
// by it counts no more. Errors: *ShortError, and nothing is reserved then. A name that has a reservation keeps it.
func (s *Store) ReserveBytes(by string, space Space, n, free int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected[by] != nil {
		return nil
	}
	if err := s.hasRoom(space, charge(n), 0, free); err != nil {
		return err
	}
	s.expect(by, space, n)
	s.evictPromised(free)
	return nil
}

// KeepBytes is ReserveBytes of what nobody asks whether there is room for it: what runs already, or is this site's own.
func (s *Store) KeepBytes(by string, space Space, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected[by] == nil {
		s.expect(by, space, n)
	}
}

// Release ends what ReserveBytes and KeepBytes keep for a name; without any it does nothing.
func (s *Store) Release(by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.expected[by]; x != nil {
		s.promised[x.space] -= x.open()
		delete(s.expected, by)
	}
}

// Promised returns how many bytes of a space are kept for what is to come.
func (s *Store) Promised(space Space) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.promised[space]
}

// Fits reports whether what a ShortError was about would have room now.
func (s *Store) Fits(e *ShortError, free int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasRoom(e.Space, e.Bytes, e.kept, free) == nil
}

// Left returns how many bytes more a space may have now, on a disk with so many free; promises are not looked at.
func (s *Store) Left(space Space, free int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(min(s.left(space), free+s.evictable()), 0)
}

// Room returns how many bytes inputs and outputs of another site's task may take: now, beside what is pinned here and
// what waits for its owner, and ever, once all of that has gone. What is promised counts as free, for it is decided
// task by task, and so do spare bytes of the outgoing space, which go when room is wanted.
func (s *Store) Room(free, spare int64) (now, ever int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = min(s.left(Cache), s.left(Outgoing)+spare, free+s.evictable()+spare)
	ever = min(s.limits[Cache].Max, s.limits[Outgoing].Max, free+s.used[Cache]+s.used[Outgoing])
	return max(now, 0), max(ever, 0)
}
