package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// unopened makes a site hand all back that it was assigned, for want of keys, at a live and at a restored replica.
func (w *world) unopened(t *testing.T, site string) {
	t.Helper()
	d := &command.Decline{Reason: "no key", Unopened: true}
	for _, a := range w.s.Assignments(site) {
		d.Attempts = append(d.Attempts, a.AttemptRef)
	}
	twin, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	batch := &command.Batch{Term: 1, Commands: []command.Command{w.cmd(site, d)}}
	for _, s := range []*State{w.s, twin} {
		if _, err = s.Apply(batch); err != nil {
			t.Fatal(err)
		}
	}
	sameSteps(t, w.s, twin)
}

// TestRefusedKeysKeepNobodyWaiting: an owner that gives no keys, or is not reached, has as many jobs as it likes before
// an honest one's. A decline bars many of them, and the site's next offer lets all in again.
func TestRefusedKeysKeepNobodyWaiting(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "h")
	w.submitMany("a", 10*maxAlike)
	w.submit("h", w.job("h", 1))
	w.must("b", w.offering("b", 1))
	for declines := 0; w.s.Assignments("b")[0].Job.Site != "h"; declines++ {
		if declines > 10 {
			t.Fatalf("after %d declines b is still assigned jobs of a", declines)
		}
		w.unopened(t, "b")
		w.check()
	}
	w.must("b", w.offering("b", 2))
	as := w.s.Assignments("b")
	if n := len(as); n != 2 || as[0].Job.Site == as[1].Job.Site {
		t.Errorf("after b's next offer it is assigned %+v, want one more job, of a", as)
	}
}
