package ahead

import (
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// TestIdleIsTheLeastMeasured: near sites ask for nothing, far ones for a power of two, which stays while the network
// does; load alone changes nothing as long as one of the last commands went through without it.
func TestIdleIsTheLeastMeasured(t *testing.T) {
	out, now := turn.NewOutbox("a"), &turn.Clock{}
	b := NewBook(&out, now)
	for i, step := range []struct {
		took []int64
		want int64
	}{
		{took: []int64{400, 400, 400}, want: 0}, // too few
		{took: []int64{900}, want: 512},
		{took: []int64{4, 900, 900}, want: 0},
		{took: slices.Repeat([]int64{200}, 29), want: 0}, // one that was quick is remembered
		{took: []int64{200}, want: 256},
		{took: []int64{100, 100, 100, 100, 100, 100, 100, 100}, want: 256},
		{took: []int64{300, 300, 300, 300, 300, 300, 300, 300}, want: 512},
		{took: []int64{128, 900, 900}, want: 128},
		{took: []int64{33_000, 33_000, 33_000, 33_000, 33_000, 33_000, 33_000, 33_000}, want: command.MaxAheadMs},
		{took: []int64{31, 31, 31, 31, 31, 31, 31, 31}, want: leastTold},
		{took: []int64{20}, want: leastTold}, // it is left only well below
		{took: []int64{9}, want: 0},
	} {
		for _, ms := range step.took {
			b.Took(time.Duration(ms) * time.Millisecond)
		}
		if b.Tell(command.AheadVersion); b.Ms() != step.want {
			t.Errorf("step %d: told %d ms, want %d", i, b.Ms(), step.want)
		}
		b.inflight = false
	}
}

// TestIdleMeasuresOneCommandAtATime: from its turn until its result, of those of this incarnation.
func TestIdleMeasuresOneCommandAtATime(t *testing.T) {
	out, now := turn.NewOutbox("a"), &turn.Clock{}
	out.BeginIncarnation(5)
	b, fx := NewBook(&out, now), &turn.Effects{}
	send := func() command.Command {
		out.Add(&command.Leave{}, nil)
		out.Flush(fx)
		b.Sent()
		return fx.Propose[len(fx.Propose)-1]
	}
	first := send()
	now.Boot += int64(time.Second)
	second := send()
	now.Boot += int64(time.Second)
	b.Sent() // nothing new is under way
	b.Heard([]command.Command{second})
	old := first
	old.ID.Incarnation = 4
	if b.Heard([]command.Command{old}); len(b.took) != 0 {
		t.Fatalf("measured %v of another command", b.took)
	}
	if b.Heard([]command.Command{first}); len(b.took) != 1 || b.took[0] != 2000 {
		t.Errorf("measured %v, want 2 s", b.took)
	}
	if b.Sent(); b.seq != 0 {
		t.Error("it waits for a command whose result is known")
	}
}

// TestQueuesKeepTheirOrder: who waits first begins first, wherever others are dropped.
func TestQueuesKeepTheirOrder(t *testing.T) {
	out, now := turn.NewOutbox("a"), &turn.Clock{Boot: 7}
	b := NewBook(&out, now)
	ids := []executor.ID{{Job: "a.1"}, {Job: "a.2"}, {Job: "a.3"}}
	for range 2 { // the second time nothing changes
		for _, id := range ids {
			b.Hold(id, command.AttemptRef{}, "m", command.Resources{MilliCPU: 500})
		}
	}
	if q, need := b.Of("m"); len(q) != 3 || need.MilliCPU != 1500 || b.IsBehind(ids[0], "m") || !b.IsBehind(ids[1], "m") ||
		b.IsBehind(ids[1], "other") {
		t.Errorf("%d wait and need %v", len(q), need)
	}
	now.Boot = 20
	b.Begin(ids[0])
	if q, _ := b.Of("m"); len(q) != 2 || b.IsBehind(ids[1], "m") || b.Stands("m", q[0]) != 0 {
		t.Errorf("%v wait after the first began", q)
	}
	b.Keep(map[executor.ID]bool{ids[2]: true})
	if q, _ := b.Of("m"); len(q) != 1 || q[0].ID != ids[2] {
		t.Errorf("%v wait after the others were taken away", q)
	}
	if b.Clear(); len(b.Machines()) != 0 || b.IsHeld(ids[2]) || len(b.moved) != 0 {
		t.Error("something waits in an empty book")
	}
}
