package outputs

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// maxRemoved bounds the removed segments that are remembered: two million outputs at
// most, 25 MiB on the disk and 8 MiB in memory.
const maxRemoved = 256

// removed is a segment that was removed; its index stays a while under a name that
// says why and when, so that an answer can.
type removed struct {
	number uint32
	byAge  bool
	at     time.Time // in seconds
	// prints are the upper halves of the keys that its index has, ascending: they say
	// without a look at the disk what was not in it. nil: the index has to be searched.
	prints []uint32
}

func (r *removed) name() string {
	why := "bytes"
	if r.byAge {
		why = "age"
	}
	return fmt.Sprintf("%010d-%s-%d%s", r.number, why, r.at.Unix(), removedExt)
}

// parseRemoved reads what removed.name wrote.
func parseRemoved(name string) (r removed, ok bool) {
	part := strings.Split(strings.TrimSuffix(name, removedExt), "-")
	if len(part) != 3 {
		return r, false
	}
	n, err1 := strconv.ParseUint(part[0], 10, 32)
	at, err2 := strconv.ParseInt(part[2], 10, 64)
	r = removed{number: uint32(n), byAge: part[1] == "age", at: time.Unix(at, 0)}
	return r, err1 == nil && err2 == nil && r.name() == name
}

func printOf(key uint64) uint32 { return uint32(key >> 32) }

// printsOf returns the prints of an index's entries, which are in the order of keys.
func printsOf(entries []entry) []uint32 {
	prints := make([]uint32, len(entries))
	for i, e := range entries {
		prints[i] = printOf(e.key)
	}
	return prints
}

// loadRemoved reads the indexes of removed segments, and drops those that are none, as
// of another version. REQUIRES: nobody else yet.
func (s *Store) loadRemoved(gone []removed) {
	kept := gone[:0]
	for _, r := range gone {
		_, entries, err := s.folder.readIndex(r.name())
		switch {
		case err == nil:
			r.prints = printsOf(entries)
		case !MayPass(err):
			s.folder.remove(r.name())
			continue
		}
		kept = append(kept, r)
	}
	s.mu.Lock()
	s.removed = kept
	s.mu.Unlock()
}

// Removed returns why and when an attempt's output was removed, false if that is not
// remembered. Attempt 0 is the newest.
func (s *Store) Removed(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	key := keyOf(job, task, attempt)
	for _, r := range s.mayHaveHad(key) {
		if s.wasIn(&r, key) {
			return executor.OutputRemoval{ByAge: r.byAge, At: r.at}, true
		}
	}
	if attempt == 0 {
		return s.Removed(job, task, 1)
	}
	return executor.OutputRemoval{}, false
}

// mayHaveHad returns the removed segments that may have had a key, the latest first.
func (s *Store) mayHaveHad(key uint64) (list []removed) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range slices.Backward(s.removed) {
		r := &s.removed[i]
		if _, ok := slices.BinarySearch(r.prints, printOf(key)); ok || r.prints == nil {
			list = append(list, *r)
		}
	}
	return list
}

func (s *Store) wasIn(r *removed, key uint64) bool {
	f, err := s.folder.open(r.name(), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	return err == nil && searchIndex(f, st.Size(), key)
}

// forgetRemoved forgets what was removed the longest ago.
// REQUIRES: s.writing held, or nobody else yet.
func (s *Store) forgetRemoved() {
	s.mu.Lock()
	over := s.removed[:max(len(s.removed)-maxRemoved, 0)]
	s.removed = s.removed[len(over):]
	s.mu.Unlock()
	for i := range over {
		s.folder.remove(over[i].name())
	}
}
