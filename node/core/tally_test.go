package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// counted are the tallies of a handler that are not zero.
func (s *rigSite) counted() string {
	text := ""
	declined, lost := s.core.tallies.List(nil)
	for _, n := range append(declined, lost...) {
		if n.Count > 0 {
			text += fmt.Sprintf("%s %s %d; ", n.Handler, n.Kind, n.Count)
		}
	}
	return text
}

// TestDeclinesAreCounted by handler and by the class of what was said, at home too.
func TestDeclinesAreCounted(t *testing.T) {
	const there = `{"command":["sleep"],"sites":{"only":["b"]}}`
	for want, err := range map[string]error{
		"local unfit 1; ":   fmt.Errorf("%w: no", executor.ErrUnfit),
		"local busy 1; ":    fmt.Errorf("%w: full", executor.ErrBusy),
		"local late 1; ":    executor.ErrLate,
		"local trouble 1; ": errSick,
	} {
		r := newRig(t, command.DefaultParams(), 1, 1)
		a, b := r.sites[0], r.sites[1]
		b.refuse = err
		a.submit(there, "")
		r.settle()
		if got := b.counted(); got != want {
			t.Errorf("%v: counted %q, want %q", err, got, want)
		}
		if a.refuse = err; want == "local unfit 1; " {
			a.submit(`{"command":["sleep"],"sites":{"only":["a"]}}`, "")
			if got := a.counted(); got != want {
				t.Errorf("%v at home: counted %q, want %q", err, got, want)
			}
		}
	}
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.core.bounds.SetGuard("local", Guard{})
	a.submit(there, "")
	r.settle()
	if got := b.counted(); got != "local unbound 1; " {
		t.Error(got)
	}
}

// TestSettledIsNotLost: a killed broker may find the record of a home run that had
// ended; that is no loss.
func TestSettledIsNotLost(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	a.finish(a.only(), 0)
	a.boot()
	if got := a.counted(); got != "" {
		t.Errorf("counted %q", got)
	}
}

// TestLossesAreCounted: what ended at its fence or vanished; the end that somebody
// asked for is none.
func TestLossesAreCounted(t *testing.T) {
	for want, res := range map[string]executor.Result{
		"local fenced 1; ":   {Cause: executor.Fenced},
		"local vanished 1; ": {Cause: executor.Vanished},
		"local stopped 1; ":  {Cause: executor.Stopped},
		"local orphaned 1; ": {Cause: executor.Orphaned},
		"":                   {ExitCode: 1, Run: time.Second},
	} {
		r := newRig(t, command.DefaultParams(), 1)
		a := r.sites[0]
		a.submit(sleepJob, "")
		id := a.only()
		delete(a.running, id)
		a.turn(EndedEvent{id, res})
		if got := a.counted(); got != want {
			t.Errorf("%v: counted %q, want %q", res.Cause, got, want)
		}
	}
}
