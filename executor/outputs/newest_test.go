package outputs

import (
	"fmt"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// attempt is an output of an attempt of task 1.
func attempt(n uint32) Item {
	it := item(1, fmt.Sprint("attempt ", n), "")
	it.ID.Attempt = n
	it.At = moment.Add(time.Duration(n) * 2 * time.Hour) // a segment for each
	return it
}

func (s *shelf) newest(want uint32) {
	s.Helper()
	if got := s.FindNewest("a.1", 1); got != (executor.Newest{Attempt: want}) {
		s.Errorf("newest %+v, want %d", got, want)
	}
}

// TestNewestAttempt: whoever does not know how many attempts a task has had finds the
// newest of them, over restarts, with and without indexes.
func TestNewestAttempt(t *testing.T) {
	s := openShelf(t, configAt(t.TempDir()))
	s.newest(0)
	s.put(attempt(1))
	s.newest(1)
	s.put(attempt(2), attempt(4))
	s.newest(4)
	s.put(attempt(3)) // its disk refused it for a while
	s.newest(4)
	s.put(item(2, "another task", ""))
	s.reopen()
	s.newest(4)
	for _, g := range s.segments {
		s.folder.remove(fileOf(g.number, indexExt))
	}
	s.reopen()
	if st := s.Stats(); st.Outputs != 5 {
		t.Errorf("%d outputs", st.Outputs)
	}
	if id, err := s.Find("a.1", 1, 3); err != nil || id.Attempt != 3 {
		t.Errorf("an earlier one: %v, %v", id, err)
	}
}

// TestNewestRemovedAttempt: that the newest attempt of a task was removed is known
// without its number.
func TestNewestRemovedAttempt(t *testing.T) {
	s := openShelf(t, configAt(t.TempDir()))
	s.put(attempt(1), attempt(2), item(2, "another task", ""))
	s.at(moment.Add(60 * time.Hour))
	s.Sweep()
	s.newest(0)
	for range 2 {
		for task, want := range map[uint32]bool{1: true, 2: true, 3: false} {
			if why, was := s.Removed("a.1", task, 0); was != want || was && !why.ByAge {
				t.Errorf("the newest of task %d: %+v, %v", task, why, was)
			}
		}
		s.reopen()
	}
}
