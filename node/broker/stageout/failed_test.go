package stageout

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
)

// leaves returns a handler's side of one file of its own bytes.
func leaves(name string, bytesOf int) *left {
	return &left{files: []leftFile{{"out/x", bytes.Repeat([]byte(name), bytesOf/len(name))}}}
}

// withQuota starts over with a store of a quota.
func (r *rig) withQuota(quota int64) {
	r.Helper()
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	r.quota = quota
	r.openStore(r.TempDir())
	r.reopen()
}

// has returns what the owner of an attempt's outputs is told that asks for them.
func (r *rig) has(o Order, out Outcome) transfer.Refusal {
	r.Helper()
	_, refusal := r.get(refTo(r.T, o).Job.Site, o, transfer.Manifest, out.Output.Manifest)
	return refusal
}

// TestFailuresMakeRoom: what is delivered finds the room that failures have taken, the oldest of which goes first; its
// owner is told that it is gone, after which nothing of it is left.
func TestFailuresMakeRoom(t *testing.T) {
	r := newRig(t)
	r.withQuota(1 << 20)
	var orders []Order
	var outs []Outcome
	for i := range 3 {
		o := ended(fmt.Sprintf("a.%d", i+1), 1)
		r.now = r.now.Add(time.Minute)
		out := r.collect(leaves(fmt.Sprint("failed", i), 300_000), o)
		if out.Output.IsZero() {
			t.Fatalf("%+v", out)
		}
		orders, outs = append(orders, o), append(outs, out)
	}
	done := ended("c.1", 0)
	out := r.collect(leaves("delivered", 400_000), done)
	if out.Output.IsZero() || r.has(done, out) != transfer.Granted || len(r.pauses) > 0 {
		t.Errorf("delivered: %+v, %d pauses", out, len(r.pauses))
	}
	for i, want := range []transfer.Refusal{transfer.Gone, transfer.Gone, transfer.Granted} {
		if got := r.has(orders[i], outs[i]); got != want {
			t.Errorf("failure %d: %s, want %s", i, got, want)
		}
	}
	again := ended("c.2", 0) // what is delivered makes no room
	if out := r.collect(leaves("more", 700_000), again); out.Lost == "" || r.has(done, outcomeOf(r, done)) != transfer.Granted {
		t.Errorf("beyond what is delivered: %+v", out)
	}
}

// TestFailuresDoNotGoInVain: what failures have left stays if all of it were too little for what wants room, after a
// start, too, and no more of it goes than is lacking.
func TestFailuresDoNotGoInVain(t *testing.T) {
	r := newRig(t)
	r.withQuota(1 << 20)
	var orders []Order
	var outs []Outcome
	for i := range 3 {
		orders = append(orders, ended(fmt.Sprintf("a.%d", i+1), 1))
		r.now = r.now.Add(time.Minute)
		outs = append(outs, r.collect(leaves(fmt.Sprint("failed", i), 200_000), orders[i]))
	}
	wantKept := func(when string, from int) {
		t.Helper()
		for i := range orders {
			if got := r.has(orders[i], outs[i]); (got == transfer.Granted) != (i >= from) {
				t.Errorf("%s: failure %d: %s", when, i, got)
			}
		}
	}
	for range 2 {
		if freed, err := r.LetGo(t.Context(), 700_000); freed != 0 || err != nil {
			t.Errorf("all of it is too little: %d go, %v", freed, err)
		}
		if out := r.collect(leaves("larger than all", 2<<20), ended("c.1", 0)); out.Lost == "" {
			t.Errorf("larger than the quota: %+v", out)
		}
		wantKept("what wants more than there is", 0)
		r.reopen()
	}
	if freed, err := r.LetGo(t.Context(), 100_000); freed < 200_000 || err != nil {
		t.Errorf("some of it is enough: %d go, %v", freed, err)
	}
	wantKept("what wants some of it", 1)
}

// outcomeOf returns what is kept of an attempt.
func outcomeOf(r *rig, o Order) (out Outcome) {
	if e := r.by[refTo(r.T, o)]; e != nil {
		out.Output = e.Output
	}
	return out
}

// TestFailuresOfOneOwnerPushOutItsOwn: a rival whose tasks fail with much takes no other owner's room.
func TestFailuresOfOneOwnerPushOutItsOwn(t *testing.T) {
	r := newRig(t)
	r.withQuota(1 << 20)
	other := ended("a.1", 1)
	kept := r.collect(leaves("other", 200_000), other)
	var last Order
	for i := range 8 {
		r.now = r.now.Add(time.Minute)
		last = ended(fmt.Sprintf("rival.%d", i+1), 1)
		r.collect(leaves(fmt.Sprint("rival", i), 300_000), last)
	}
	if got := r.has(other, kept); got != transfer.Granted {
		t.Errorf("another owner's: %s", got)
	}
	if got := r.has(last, outcomeOf(r, last)); got != transfer.Granted {
		t.Errorf("the rival's last: %s", got)
	}
}

// TestFailureWaitsForNoRoom: what has no room is not kept, at once, and it stays a failure.
func TestFailureWaitsForNoRoom(t *testing.T) {
	r := newRig(t)
	r.withQuota(1 << 18)
	out := r.collect(leaves("large", 1<<19), ended("a.1", 1))
	if !out.Output.IsZero() || out.Lost == "" || len(r.pauses) > 0 || len(r.by) > 0 {
		t.Errorf("%+v, %d pauses, %d kept", out, len(r.pauses), len(r.by))
	}
}

// TestOwnerReleases: what its owner has, or does not want, goes with the next look; nobody else, and no other manifest,
// releases it, and of a task that is delivering the state alone decides.
func TestOwnerReleases(t *testing.T) {
	r := newRig(t)
	failed, done := ended("a.7", 1), ended("a.8", 0)
	left, delivering := r.collect(leaves("failed", 50_000), failed), r.collect(leaves("done", 50_000), done)
	for _, x := range []struct {
		from string
		o    Order
		hash [32]byte
		want transfer.Refusal
	}{
		{"c", failed, left.Output.Manifest, transfer.NotAllowed},
		{"a", failed, files.HashOf(nil), transfer.NotAllowed},
		{"a", done, delivering.Output.Manifest, transfer.NotAllowed},
	} {
		if _, got := r.get(x.from, x.o, transfer.Release, x.hash); got != x.want {
			t.Errorf("%s releases %s: %s", x.from, x.o.ID, got)
		}
	}
	r.Sweep(t.Context(), false)
	if r.has(failed, left) != transfer.Granted || r.has(done, delivering) != transfer.Granted {
		t.Fatal("it went by what was refused")
	}
	if _, got := r.get("a", failed, transfer.Release, left.Output.Manifest); got != transfer.Gone {
		t.Errorf("its owner: %s", got)
	}
	r.Sweep(t.Context(), false)
	r.store.Unpin("nothing")
	if _, _, err := r.store.Collect(); err != nil {
		t.Fatal(err)
	}
	if got := r.has(failed, left); got != transfer.Gone || r.has(done, delivering) != transfer.Granted {
		t.Errorf("released: %s", got)
	}
	r.reopen()
	if got := r.has(failed, left); got != transfer.NotHere {
		t.Errorf("after a restart: %s", got)
	}
}

// TestDeliveringIsCancelled: what an attempt has left that succeeded, and whose task was cancelled before its owner had
// it, goes as the owner says, or for room, as what a failure left: it stayed until data.hold was over.
func TestDeliveringIsCancelled(t *testing.T) {
	r := newRig(t)
	released, pushed := ended("a.7", 0), ended("a.8", 0)
	first, second := r.collect(leaves("first", 50_000), released), r.collect(leaves("second", 50_000), pushed)
	if n := r.Spare(); n != 0 {
		t.Fatalf("%d bytes of what is delivering may go", n)
	}
	for _, o := range []Order{released, pushed} {
		r.wanted[refTo(t, o)], r.failed[refTo(t, o)] = false, true
	}
	r.change++
	r.Sweep(t.Context(), false)
	if r.has(released, first) != transfer.Granted || r.has(pushed, second) != transfer.Granted {
		t.Fatal("its owner may still fetch it")
	}
	if _, got := r.get("a", released, transfer.Release, first.Output.Manifest); got != transfer.Gone {
		t.Errorf("its owner lets it go: %s", got)
	}
	r.Sweep(t.Context(), false)
	if got := r.has(released, first); got != transfer.Gone {
		t.Errorf("released: %s", got)
	}
	if n, err := r.LetGo(t.Context(), 1); n == 0 || err != nil {
		t.Errorf("%d bytes went for room, %v", n, err)
	}
	if got := r.has(pushed, second); got != transfer.Gone {
		t.Errorf("its room was wanted: %s", got)
	}
}

// partly is a handler whose task has left less than it had to.
type partly struct{ left }

func (p *partly) Collect(ctx context.Context, id executor.ID, want executor.Outputs, sink executor.OutputSink) error {
	if len(want.Paths) > 0 {
		return &executor.MissingOutputError{Glob: want.Paths[0]}
	}
	return p.left.Collect(ctx, id, want, sink)
}

// TestWhatIsThereOfLessThanIsRequired: it has failed, and what it left is kept as of any failure, or is not.
func TestWhatIsThereOfLessThanIsRequired(t *testing.T) {
	for when, want := range map[executor.When]bool{executor.WhenAlways: true, executor.WhenSuccess: false} {
		r := newRig(t)
		o := ended("a.7", 0)
		o.Outputs.When = when
		p := &partly{left{files: []leftFile{{"log", []byte("why")}}}}
		r.wanted[refTo(t, o)] = true
		out, err := r.Collect(t.Context(), p, o)
		if err != nil || out.Failed == "" || out.Lost != "" || !out.Output.IsZero() != want || (len(r.by) == 1) != want {
			t.Errorf("%d: %+v, %v", when, out, err)
		}
		if e := r.by[refTo(t, o)]; want && e.Succeeded {
			t.Error("it is kept as what has succeeded")
		}
	}
}

// TestNothingIsNotKept: of a failure that left nothing nobody is to come for an empty list.
func TestNothingIsNotKept(t *testing.T) {
	r := newRig(t)
	if out := r.collect(&left{}, ended("a.7", 1)); !out.Output.IsZero() || len(r.by) != 0 {
		t.Errorf("%+v", out)
	}
}
