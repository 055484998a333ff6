package attempts

import (
	"os"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// forgotten enters a forgotten attempt of an earlier life, as a handler's Adopt does.
func (s *shelf) forgotten(n uint32, e End) executor.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &record{AdoptedAttempt(numbered(n))}
	w.Ended = &e
	close(w.Done)
	s.Enter(w)
	s.Keep(w)
	return w.Task
}

// TestSizesOfARecordAreNotTrusted: what stands in a handler's files of an attempt's
// sizes, tasks may have written: it costs that output at most.
func TestSizesOfARecordAreNotTrusted(t *testing.T) {
	for name, size := range map[string]int64{"negative": -1, "more than any": 1 << 60, "more than there is": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			bad := s.forgotten(1, End{At: time.Now(), Out: [2]int64{size, 0}})
			good := s.forgotten(2, End{At: time.Now(), Out: [2]int64{4, 0}})
			for _, task := range []executor.Task{bad, good} {
				if err := os.WriteFile(s.file(task), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.adopt()
			s.KeepNow()
			if !s.store.Has(good.ID) || s.dropped != 2 {
				t.Errorf("the other one is not kept; %d dropped, %+v", s.dropped, s.store.Stats())
			}
		})
	}
}

// TestWhatWentLongAgoPushesNothingOut: the records of attempts live longer than what
// was removed is remembered. After a restart they do not come back as outputs that
// are lost, and take no room from those that are kept.
func TestWhatWentLongAgoPushesNothingOut(t *testing.T) {
	s := newShelf(t)
	kept := s.forgotten(1, End{At: time.Now(), Out: [2]int64{4, 0}})
	if err := os.WriteFile(s.file(kept), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.KeepNow()
	hour := time.Now().Add(-time.Hour)
	s.forgotten(2, End{At: hour, Out: [2]int64{4, 0}}) // its file went with its output
	s.forgotten(3, End{At: hour})
	s.adopt()
	s.KeepNow()
	if st := s.store.Stats(); st.Outputs != 1 || s.dropped != 3 {
		t.Errorf("%d dropped, %+v", s.dropped, st)
	}
}

// TestCloseWaitsForNoList: a broker that stops leaves what waits to the next one.
func TestCloseWaitsForNoList(t *testing.T) {
	s := newShelf(t).adopt()
	close(s.keeper.quit)
	<-s.keeper.done
	task := s.ended(1, "mine")
	s.KeepNow()
	if s.dropped != 0 {
		t.Error("it goes on")
	}
	if got, err := s.read(task); err != nil || got != "mine" {
		t.Errorf("read %q, %v", got, err)
	}
	s.keeper.quit = make(chan struct{}) // for the cleanup
}
