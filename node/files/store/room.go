package store

import (
	"errors"
	"fmt"
	"time"
)

// claim waits until a slot is not busy and returns its entry; without one it occupies the slot for the caller.
//
// REQUIRES: s.mu held, which it gives up while it waits.
func (s *Store) claim(at slot) *entry {
	s.await(at)
	e := s.entries[at]
	if e == nil {
		s.occupy(at)
	}
	return e
}

// await waits until a slot is not busy.
//
// REQUIRES: s.mu held, which it gives up while it waits.
func (s *Store) await(at slot) {
	for done := s.busy[at]; done != nil; done = s.busy[at] {
		s.mu.Unlock()
		<-done
		s.mu.Lock()
	}
}

// reserve has n more bytes count in a space and returns what has to go for them: the caller passes it to discard once
// it has let s.mu go. Only the cache makes room. REQUIRES: s.mu held.
func (s *Store) reserve(space Space, n int64) (victims []*entry, err error) {
	limit := s.limits[space].Max
	evictable := int64(0)
	if space == Cache && s.pinned {
		evictable = s.unheld[space]
	}
	if s.used[space]-evictable > limit-n {
		return nil, fmt.Errorf("%w: %d more bytes and the %d in use (%d of them may go) are more than %d of %s",
			ErrFull, n, s.used[space], evictable, limit, space)
	}
	for s.used[space] > limit-n {
		e := s.idle[space][0]
		s.evict(e)
		victims = append(victims, e)
	}
	s.used[space] += n
	return victims, nil
}

// makeRoom reserves n bytes, and removes what has to go for them.
func (s *Store) makeRoom(at Place, n int64) error {
	s.mu.Lock()
	err := s.check(at)
	var victims []*entry
	if err == nil {
		victims, err = s.reserve(at.Space, n)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err = s.discard(victims); err != nil {
		s.unreserve(at.Space, n)
	}
	return err
}

// unreserve takes bytes off the quota.
func (s *Store) unreserve(space Space, n int64) {
	s.mu.Lock()
	s.used[space] -= n
	s.mu.Unlock()
}

// discard removes the files of evicted entries. One that cannot be removed is in the index again.
func (s *Store) discard(victims []*entry) (err error) {
	for _, e := range victims {
		cause := s.removeFiles(e.slot)
		s.mu.Lock()
		if cause != nil {
			again := &entry{slot: e.slot, size: e.size, used: s.now(), damaged: e.damaged}
			s.used[e.Space] += charge(e.size)
			s.add(again)
			err = errors.Join(err, wrap("remove", e.key, cause))
		}
		s.vacate(e.slot)
		s.mu.Unlock()
	}
	return err
}

// removeFiles removes what is on the disk of a blob, whole or in the making.
func (s *Store) removeFiles(at slot) error {
	if !at.part {
		return s.removeWhole(at.key)
	}
	name := fileOf(at.key)
	// Rows without a partial blob say nothing; a partial blob without rows would be one of a single piece.
	if err := s.disk.remove(name + partExt); err != nil {
		return err
	}
	return s.disk.remove(name + rowsExt)
}

// removeWhole removes the file of a whole blob, and has it not come back from the log.
func (s *Store) removeWhole(k key) error {
	err := s.disk.remove(fileOf(k))
	if err == nil {
		s.log.forget(k)
	}
	return err
}

// maxCollected is how many blobs one Collect or Evict removes.
const maxCollected = 256

// Evict removes unpinned blobs of the cache, the least recently used first, until n bytes have gone, in one step of
// maxCollected blobs at most. It returns how many bytes that were: 0, there is nothing that may go. It removes nothing
// before Repin.
func (s *Store) Evict(n int64) (freed int64, err error) {
	s.mu.Lock()
	var victims []*entry
	for s.pinned && !s.closed && freed < n && len(s.idle[Cache]) > 0 && len(victims) < maxCollected {
		e := s.idle[Cache][0]
		s.evict(e)
		victims = append(victims, e)
		freed += charge(e.size)
	}
	s.mu.Unlock()
	return freed, s.discard(victims)
}

// maxSteps is how many steps of Evict follow each other for one cause.
const maxSteps = 64

// evictAll has n bytes of the cache go, or as many as may.
func (s *Store) evictAll(n int64) (freed int64) {
	for range maxSteps {
		if freed >= n {
			break
		}
		step, err := s.Evict(n - freed)
		if freed += step; step == 0 || err != nil {
			break
		}
	}
	return freed
}

// withRoom does what a full disk may refuse, and once more if n bytes of the cache, or some, could go for it.
func (s *Store) withRoom(n int64, do func() error) error {
	err := do()
	if isDiskFull(err) && s.evictAll(n) > 0 {
		return do()
	}
	return err
}

// Collect removes blobs whose time is over, maxCollected at most, and reports whether there are more; behind the last
// the log is wiped of what went. It removes nothing before Repin.
func (s *Store) Collect() (removed int, more bool, err error) {
	now := s.now()
	s.mu.Lock()
	var victims []*entry
	for space := Own; space < spaces && s.pinned && !s.closed; space++ {
		for s.isDue(space, now) {
			if len(victims) == maxCollected {
				more = true
				break
			}
			e := s.idle[space][0]
			s.evict(e)
			victims = append(victims, e)
		}
	}
	s.mu.Unlock()
	err = s.discard(victims)
	if !more {
		s.log.wipe(now)
	}
	return len(victims), more, err
}

// Abandon removes partial blobs that nobody pins or fills: who filled them does not want them any more. Whole ones stay
// for Limit.Keep.
func (s *Store) Abandon(refs ...Ref) error {
	var victims []*entry
	s.mu.Lock()
	for _, k := range refs {
		e := s.entries[slot{k, true}]
		if e != nil && e.holds == 0 && s.pins[k] == 0 && !s.closed {
			s.evict(e)
			victims = append(victims, e)
		}
	}
	s.mu.Unlock()
	return s.discard(victims)
}

// Withdraw removes whole blobs that were not there before a moment, and that nobody has put again, asked for, pinned or
// opened since: who has put them does not want them any more, and room is wanted. It removes nothing before Repin.
func (s *Store) Withdraw(since time.Time, refs ...Ref) error {
	var victims []*entry
	s.mu.Lock()
	for _, k := range refs {
		e := s.entries[slot{key: k}]
		if e == nil || e.put.IsZero() || e.put.Before(since) || !e.used.Equal(e.put) {
			continue
		}
		if e.holds == 0 && s.pins[k] == 0 && s.pinned && !s.closed {
			s.evict(e)
			victims = append(victims, e)
		}
	}
	s.mu.Unlock()
	return s.discard(victims)
}

// isDue reports whether the space's least recently used entry has to go. REQUIRES: s.mu held.
func (s *Store) isDue(space Space, now time.Time) bool {
	keep := s.limits[space].Keep
	return keep > 0 && len(s.idle[space]) > 0 && !s.idle[space][0].used.Add(keep).After(now)
}
