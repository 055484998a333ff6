package relay

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

func newCall(t *testing.T, p *pending, seq uint64) *proposal {
	t.Helper()
	c := &proposal{
		done: make(chan struct{}), ids: []command.ID{{Site: "a", Incarnation: 1, Seq: seq}},
		cmds: [][]byte{nil},
	}
	if err := p.add(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// The class of a call that ends without a result is exact: unknown as soon as
// any attempt may be in the log, and never before.
func TestOutcomeClasses(t *testing.T) {
	for _, tc := range []struct {
		name     string
		attempts []Outcome // outcome of each; the last may be missing
		sent     int
		want     error
	}{
		{"never sent", nil, 0, coord.ErrNoLead},
		{"under way", nil, 1, coord.ErrUnknown},
		{"refused", []Outcome{Refused}, 1, coord.ErrRefused},
		{"refused, then under way", []Outcome{Refused}, 2, coord.ErrUnknown},
		{"unknown, then refused", []Outcome{Unknown, Refused}, 2, coord.ErrUnknown},
		{"ordered, not applied", []Outcome{Ordered}, 1, coord.ErrUnknown},
	} {
		p := newPending(1)
		c := newCall(t, p, 1)
		for i := range tc.sent {
			if i > 0 {
				p.markResting(c)
				p.wake(c)
			}
			if got := p.takeQueue(); len(got) != 1 {
				t.Fatalf("%s: %d calls taken", tc.name, len(got))
			}
			if i < len(tc.attempts) {
				p.recordOutcome(c, tc.attempts[i], 5)
			}
		}
		a, ok := p.abandon(c)
		if !ok || !errors.Is(a.class(), tc.want) {
			t.Errorf("%s: %v", tc.name, a.class())
		}
		if p.recordOutcome(c, Refused, 0) {
			t.Errorf("%s: an abandoned call is retried", tc.name)
		}
	}
}

func TestPendingApply(t *testing.T) {
	p := newPending(1)
	c := newCall(t, p, 1)
	p.takeQueue()
	cmd := func(last byte) []byte { return []byte{6, 0, 0, 0, 0, 0, last} }
	c.cmds = [][]byte{cmd(3)}
	batch := command.AppendBatch(nil, 1, 0, [][]byte{cmd(1), cmd(2), cmd(3)}, nil)
	results := []command.Result{{Index: 1}, {Index: 2}, {Index: 3}}
	// Another origin's call of the same number, then ours behind it.
	p.apply([]call{{origin: 2, seq: 1, commands: 2}}, batch, results)
	if c.settled {
		t.Fatal("another member's result settled the call")
	}
	p.apply([]call{{origin: 1, seq: 1, commands: 1}}, batch, results) // a leader has put another command there
	if c.settled {
		t.Fatal("another command's result settled the call")
	}
	refused := []command.Result{{}, {}, {Code: command.NotSigned}}
	ours := []call{{origin: 2, commands: 2}, {origin: 1, seq: 1, commands: 1}}
	if unsigned := p.apply(ours, batch, refused); c.settled || len(unsigned) != 1 {
		t.Fatalf("a call that was not taken for ours: settled %v, %d unsigned", c.settled, len(unsigned))
	}
	p.apply([]call{{origin: 2, seq: 1, commands: 2}, {origin: 1, seq: 1, commands: 1}}, batch, results)
	if !c.settled || c.results[0].Index != 3 {
		t.Errorf("settled %v with %v", c.settled, c.results)
	}
	p.apply([]call{{origin: 1, seq: 1, commands: 1}}, batch, results) // a repeat reaches the log
}

// What a leader said to be ordered at an index that was passed, and was not there, is looked for; and at another leader
// whatever its index is. What is under way again, rests or waits to be sent is left to that.
func TestOrderedElsewhere(t *testing.T) {
	p := newPending(1)
	passed, later, never, again, rests, waits := newCall(t, p, 1), newCall(t, p, 2), newCall(t, p, 3), newCall(t, p, 4),
		newCall(t, p, 5), newCall(t, p, 6)
	p.takeQueue()
	for c, index := range map[*proposal]uint64{passed: 7, later: 1 << 60, again: 7, rests: 7, waits: 7} {
		p.recordOutcome(c, Ordered, index)
	}
	again.attempts.underWay = true
	p.markResting(rests)
	p.markResting(waits)
	p.wake(waits)
	if got := p.ordered(6); len(got) != 0 {
		t.Errorf("before that index: %d calls", len(got))
	}
	if got := p.ordered(7); len(got) != 1 || got[0] != passed {
		t.Errorf("at that index: %d calls", len(got))
	}
	got := p.ordered(math.MaxUint64)
	if len(got) != 2 || !slices.Contains(got, passed) || !slices.Contains(got, later) || slices.Contains(got, never) {
		t.Errorf("at another leader: %d calls", len(got))
	}
}

func TestPendingRestored(t *testing.T) {
	p := newPending(1)
	known, later, lost := newCall(t, p, 1), newCall(t, p, 2), newCall(t, p, 0)
	p.takeQueue()
	p.recordOutcome(later, Ordered, 20)
	p.recordOutcome(lost, Ordered, 5) // a registration: it has no number to find
	again := p.restored(10, func(id command.ID) (command.Result, bool) { return command.Result{Index: 9}, id.Seq < 2 })
	if !known.settled || known.results[0].Index != 9 {
		t.Error("a call that the snapshot executed still waits")
	}
	if later.settled || len(again) != 1 || again[0] != lost {
		t.Errorf("to be sent again: %v", again)
	}
	p.close(coord.ErrClosed, func(a attempts) error { return a.class() })
	if !errors.Is(later.err, coord.ErrUnknown) {
		t.Errorf("closed in mid-proposal: %v", later.err)
	}
	if err := p.add(&proposal{}); !errors.Is(err, coord.ErrClosed) {
		t.Errorf("a call after close: %v", err)
	}
}
