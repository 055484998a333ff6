package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// hangJournal has the site's journal hang, with a submission's write under way.
func (s *testSite) hangJournal(t *testing.T) (release func(), answer <-chan node.Answer) {
	t.Helper()
	if err := s.setDrain(t.Context(), core.Drain{}); err != nil { // no earlier write is under way after this one
		t.Fatal(err)
	}
	release = hold(t, s.journal)
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan node.Answer, 1)
	go func() { got <- s.Submit(context.WithoutCancel(t.Context()), []node.Request{{Spec: spec}})[0] }()
	for s.journal.Pending() < 2 { // the submission's write waits, too
		if err := s.query(t.Context(), func(*core.Core) {}); err != nil {
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
	a.Broker.journal.look(time.Now())
	if err := a.Live(); err != nil {
		t.Errorf("at once: %v", err)
	}
	a.Broker.journal.look(time.Now().Add(journalStall + time.Second))
	for what, err := range map[string]error{"live": a.Live(), "ready": a.Ready()} {
		if !errors.Is(err, record.ErrJournalStalled) || !strings.Contains(err.Error(), "journal.db") {
			t.Errorf("%s: %v", what, err)
		}
	}
	release()
	if got := <-answer; got.Err != nil || got.ID != (command.JobID{Site: "site-1", Num: 1}) {
		t.Errorf("the submission: %+v", got)
	}
	a.Broker.journal.look(time.Now())
	if err := errors.Join(a.Live(), a.Ready()); err != nil {
		t.Errorf("with its disk back: %v", err)
	}
}

// TestHungJournalFailsTheBroker: it says which file and what to do, and neither
// Stop nor Close waits for it forever.
func TestHungJournalFailsTheBroker(t *testing.T) {
	a := startSites(t, 1)[0]
	release, answer := a.hangJournal(t)
	a.Broker.journal.look(time.Now().Add(journalHang + time.Second))
	<-a.Failed()
	if err := a.Live(); !errors.Is(err, record.ErrJournalStalled) || !strings.Contains(err.Error(), "check the disk") {
		t.Errorf("it fails with %v", err)
	}
	if got := <-answer; got.Err == nil {
		t.Errorf("acknowledged without a sync: %+v", got)
	}
	if err := a.Stop(context.Background(), false); !errors.Is(err, record.ErrJournalStalled) {
		t.Fatalf("stop: %v", err)
	}
	if err := a.journal.Close(); !errors.Is(err, record.ErrJournalStalled) {
		t.Errorf("close: %v", err)
	}
	release()
}
