package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// hangJournal has the site's journal hang, with a submission's write under way.
func (s *testSite) hangJournal(t *testing.T) (release func(), answer <-chan Answer) {
	t.Helper()
	if err := s.wish(t.Context(), drain{}); err != nil { // no earlier write is under way after this one
		t.Fatal(err)
	}
	s.journal.mu.Lock()
	release = sync.OnceFunc(s.journal.mu.Unlock)
	t.Cleanup(release)
	spec, err := ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan Answer, 1)
	go func() { got <- s.Submit(context.WithoutCancel(t.Context()), []Request{{Spec: spec}})[0] }()
	for s.journal.began.Load() == nil {
		if err := s.ask(t.Context(), func(*core) {}); err != nil {
			t.Fatal(err)
		}
	}
	return release, got
}

// TestStalledJournalIsNotLive: /livez speaks of store progress. A journal whose
// sync does not return ends that, and readiness; once it returns all is well.
func TestStalledJournalIsNotLive(t *testing.T) {
	a := startSites(t, 1)[0]
	release, answer := a.hangJournal(t)
	a.lookAtJournal(time.Now())
	if err := a.Live(); err != nil {
		t.Errorf("at once: %v", err)
	}
	a.lookAtJournal(time.Now().Add(journalStall + time.Second))
	for what, err := range map[string]error{"live": a.Live(), "ready": a.Ready()} {
		if !errors.Is(err, ErrJournalStalled) || !strings.Contains(err.Error(), "journal.db") {
			t.Errorf("%s: %v", what, err)
		}
	}
	release()
	if got := <-answer; got.Err != nil || got.ID != (fsm.JobID{Site: "site-1", Num: 1}) {
		t.Errorf("the submission: %+v", got)
	}
	a.lookAtJournal(time.Now())
	if err := errors.Join(a.Live(), a.Ready()); err != nil {
		t.Errorf("with its disk back: %v", err)
	}
}

// TestHungJournalFailsTheBroker: it says which file and what to do, and neither
// Stop nor Close waits for it for ever.
func TestHungJournalFailsTheBroker(t *testing.T) {
	a := startSites(t, 1)[0]
	release, answer := a.hangJournal(t)
	a.lookAtJournal(time.Now().Add(journalHang + time.Second))
	<-a.Failed()
	if err := a.Live(); !errors.Is(err, ErrJournalStalled) || !strings.Contains(err.Error(), "check the disk") {
		t.Errorf("it fails with %v", err)
	}
	if got := <-answer; got.Err == nil {
		t.Errorf("acknowledged without a sync: %+v", got)
	}
	if err := a.Stop(context.Background(), false); !errors.Is(err, ErrJournalStalled) {
		t.Fatalf("stop: %v", err)
	}
	if err := a.journal.Close(); !errors.Is(err, ErrJournalStalled) {
		t.Errorf("close: %v", err)
	}
	release()
}

// TestCloseWaitsForNoHangingDisk: the journal's newest changes go to bbolt at the
// end; a disk that hangs then does not hold the process.
func TestCloseWaitsForNoHangingDisk(t *testing.T) {
	j, err := OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	j.mu.Lock() // nothing is written
	err = j.closeWithin(time.Millisecond)
	j.mu.Unlock()
	if !errors.Is(err, ErrJournalStalled) || !strings.Contains(err.Error(), "end the process") {
		t.Errorf("close: %v", err)
	}
	if err = j.Close(); err != nil {
		t.Errorf("with its disk back: %v", err)
	}
}
