package raftlog

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

func newCall(t *testing.T, p *pending, seq uint64) *proposal {
	t.Helper()
	c := &proposal{done: make(chan struct{}), ids: []fsm.CommandID{{Site: "a", Incarnation: 1, Seq: seq}}, cmds: [][]byte{nil}}
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
		attempts []outcome // outcome of each; the last may be missing
		sent     int
		want     error
	}{
		{"never sent", nil, 0, coord.ErrNoLead},
		{"under way", nil, 1, coord.ErrUnknown},
		{"refused", []outcome{refused}, 1, coord.ErrRefused},
		{"refused, then under way", []outcome{refused}, 2, coord.ErrUnknown},
		{"unknown, then refused", []outcome{unknown, refused}, 2, coord.ErrUnknown},
		{"ordered, not applied", []outcome{ordered}, 1, coord.ErrUnknown},
	} {
		p := newPending(1)
		c := newCall(t, p, 1)
		for i := range tc.sent {
			if i > 0 {
				p.rest(c)
				p.wake(c)
			}
			if got := p.take(); len(got) != 1 {
				t.Fatalf("%s: %d calls taken", tc.name, len(got))
			}
			if i < len(tc.attempts) {
				p.note(c, tc.attempts[i], 5)
			}
		}
		a, ok := p.abandon(c)
		if !ok || !errors.Is(a.class(), tc.want) {
			t.Errorf("%s: %v", tc.name, a.class())
		}
		if p.note(c, refused, 0) {
			t.Errorf("%s: an abandoned call is retried", tc.name)
		}
	}
}

func TestPendingApply(t *testing.T) {
	p := newPending(1)
	c := newCall(t, p, 1)
	p.take()
	results := []fsm.Result{{Index: 1}, {Index: 2}, {Index: 3}}
	// Another origin's call of the same number, then ours behind it.
	p.apply([]call{{origin: 2, seq: 1, commands: 2}}, results)
	if c.settled {
		t.Fatal("another member's result settled the call")
	}
	p.apply([]call{{origin: 2, seq: 1, commands: 2}, {origin: 1, seq: 1, commands: 1}}, results)
	if !c.settled || c.results[0].Index != 3 {
		t.Errorf("settled %v with %v", c.settled, c.results)
	}
	p.apply([]call{{origin: 1, seq: 1, commands: 1}}, results) // a repeat reaches the log
}

func TestPendingRestored(t *testing.T) {
	p := newPending(1)
	known, later, lost := newCall(t, p, 1), newCall(t, p, 2), newCall(t, p, 0)
	p.take()
	p.note(later, ordered, 20)
	p.note(lost, ordered, 5) // a registration: it has no number to find
	again := p.restored(10, func(id fsm.CommandID) (fsm.Result, bool) { return fsm.Result{Index: 9}, id.Seq < 2 })
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

// An entry that was stamped in one term and appended in another is skipped by
// every member, so that stamped terms never go back.
func TestVoidEntry(t *testing.T) {
	begun := make(chan struct{})
	close(begun)
	record := coordtest.NewMachine()
	m := &machine{m: record, own: newPending(1), begun: begun, onApply: func(*raft.Log) {}, fail: func(err error) { t.Error(err) }}
	h := header{term: 3}
	entry := fsm.AppendBatch(nil, 3, 0, nil)
	if err, _ := m.Apply(&raft.Log{Index: 8, Term: 4, Data: entry, Extensions: h.append(nil)}).(error); !errors.Is(err, errVoid) {
		t.Errorf("answer %v", err)
	}
	if record.Index() != 0 || m.position.now() != 8 {
		t.Errorf("entry number %d, position %d", record.Index(), m.position.now())
	}
	if r := m.Apply(&raft.Log{Index: 9, Term: 3, Data: entry, Extensions: h.append(nil)}); r != nil || record.Index() != 1 {
		t.Errorf("the same in its own term: %v, entry number %d", r, record.Index())
	}
}

// After an entry that is not understood nothing more is applied.
func TestBrokenMachine(t *testing.T) {
	begun := make(chan struct{})
	close(begun)
	record := coordtest.NewMachine()
	fails := 0
	m := &machine{m: record, own: newPending(1), begun: begun, onApply: func(*raft.Log) {}, fail: func(error) { fails++ }}
	h := header{term: 1}
	good := &raft.Log{Index: 3, Term: 1, Data: fsm.AppendBatch(nil, 1, 0, nil), Extensions: h.append(nil)}
	for _, l := range []*raft.Log{{Index: 2, Term: 1, Data: good.Data}, good} {
		if err, _ := m.Apply(l).(error); err == nil {
			t.Errorf("entry %d was applied", l.Index)
		}
	}
	if record.Index() != 0 || m.position.now() != 0 || fails == 0 {
		t.Errorf("entry number %d, position %d, %d failures", record.Index(), m.position.now(), fails)
	}
	if _, err := m.Snapshot(); err == nil {
		t.Error("a broken state is written into a snapshot")
	}
}
