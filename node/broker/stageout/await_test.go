package stageout

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// fullRig is a rig whose own space has no room for results(), until what takes it is a day old.
func fullRig(t *testing.T) *rig {
	r := newRig(t)
	_ = r.store.Close()
	r.quota = 20 * 4096
	r.openStore(t.TempDir())
	r.reopen()
	taken := bytes.NewReader(make([]byte, 16*4096))
	if _, err := r.store.Put(t.Context(), store.OwnOf("alice"), taken, 1<<20); err != nil {
		t.Fatal(err)
	}
	return r
}

// ownOrder is an ended attempt of this site's own job.
func (r *rig) ownOrder(exit int, told *[]string) Order {
	o := ended("b.7", exit)
	o.Result.Started, o.Result.Run = r.now.Add(-time.Hour), time.Hour
	o.Waits = func(why string) { *told = append(*told, why) }
	return o
}

// TestOwnResultWaitsForRoom: a result for which this site's own store has no room stays where it is until there is
// some, and is kept then, once; meanwhile nothing of it is copied, and others are collected.
func TestOwnResultWaitsForRoom(t *testing.T) {
	r := fullRig(t)
	var told []string
	before := r.store.Usage(store.Own).Bytes
	pauses := 0
	r.pause = func(context.Context, time.Duration) error {
		if pauses++; len(r.collecting) != 0 || r.store.Usage(store.Own).Bytes != before {
			t.Errorf("while it waits %d turns are taken, and %d bytes used", len(r.collecting), r.store.Usage(store.Own).Bytes)
		}
		switch pauses {
		case 3:
			if out := r.collect(results(), ended("a.7", 0)); out.Output.Bytes == 0 {
				t.Errorf("another one's outputs: %+v", out)
			}
		case 5:
			r.now = r.now.Add(25 * time.Hour)
			if n, _, err := r.store.Collect(); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		return nil
	}
	out, err := r.Collect(t.Context(), results(), r.ownOrder(0, &told))
	if err != nil || out.Output.Bytes != int64(len(big)+5) || len(r.results) != 1 {
		t.Fatalf("%+v, %v, %d results", out, err, len(r.results))
	}
	if len(told) != 5 || !strings.Contains(told[0], "its own site has no room for them (data.own, or its disk)") ||
		!strings.Contains(told[0], "they have 50005 bytes, and there is room for 16384; they are kept for 168h0m0s more") {
		t.Errorf("told %q", told)
	}
}

// TestOwnResultCopiedInVain: one that a quota cuts off in the middle waits, too, and is copied again only with more
// room than there was.
func TestOwnResultCopiedInVain(t *testing.T) {
	r := fullRig(t)
	var told []string
	o := r.ownOrder(0, &told)
	o.Outputs.MaxBytes = 3 * 4096 // less than is there of room, and than it leaves
	l := results()
	r.pause = func(context.Context, time.Duration) error {
		if len(told) == 4 {
			r.now = r.now.Add(25 * time.Hour)
			_, _, err := r.store.Collect()
			return err
		}
		return nil
	}
	out, err := r.Collect(t.Context(), l, o)
	if err != nil || out.Output.Bytes != int64(len(big)+5) || len(told) != 4 {
		t.Errorf("%+v, %v, told %d times", out, err, len(told))
	}
}

// TestOwnResultInVainLeavesNothing: what was copied of one that does not fit takes no room from others.
func TestOwnResultInVainLeavesNothing(t *testing.T) {
	r := newRig(t)
	r.withQuota(16 * 4096)
	var told []string
	o := r.ownOrder(0, &told)
	o.Outputs.MaxBytes = 4096 // it is not measured
	before := r.store.Usage(store.Own)
	l := results()
	l.files = append([]leftFile{{"out/a", bytes.Repeat([]byte("a"), files.MaxInline+1)}}, l.files...)
	r.pause = func(context.Context, time.Duration) error {
		if u := r.store.Usage(store.Own); u != before {
			t.Errorf("it has %+v, before %+v", u, before)
		}
		r.EndWait(o.ID)
		return context.Canceled
	}
	if out := r.collect(l, o); !out.Ended || len(told) != 1 {
		t.Errorf("%+v, told %q", out, told)
	}
}

// TestOwnResultIsNotWaitedForInVain: until data.hold, until its task is cancelled, and not if the task has failed.
func TestOwnResultIsNotWaitedForInVain(t *testing.T) {
	for name, want := range map[string]func(Outcome) bool{
		"hold": func(o Outcome) bool {
			return strings.Contains(o.Failed, "no room at its own site for 168h0m0s (data.hold)") &&
				strings.Contains(o.Failed, "give data.own more room")
		},
		"cancelled": func(o Outcome) bool { return o == Outcome{Ended: true} },
		"failed":    func(o Outcome) bool { return strings.Contains(o.Lost, "there is room for") && o.Output.IsZero() },
	} {
		r := fullRig(t)
		var told []string
		o := r.ownOrder(0, &told)
		if name == "failed" {
			o.Result.ExitCode = 1
		}
		pauses := 0
		r.pause = func(ctx context.Context, _ time.Duration) error {
			pauses++
			switch name {
			case "hold":
				r.now = r.now.Add(24 * time.Hour)
				_, _ = r.store.Put(t.Context(), store.OwnOf("alice"), bytes.NewReader(make([]byte, 16*4096)), 1<<20)
			case "cancelled":
				r.EndWait(executor.ID{Job: "another"})
				r.EndWait(o.ID)
			}
			return ctx.Err()
		}
		out, err := r.Collect(t.Context(), results(), o)
		if err != nil || !want(out) || len(r.waiting) != 0 || pauses > 7 {
			t.Errorf("%s: %+v, %v after %d pauses", name, out, err, pauses)
		}
	}
}

// TestOwnResultWaitsOverAnEnd: a broker that ends knows nothing of it, and its next life collects again.
func TestOwnResultWaitsOverAnEnd(t *testing.T) {
	r := fullRig(t)
	var told []string
	ctx, cancel := context.WithCancelCause(t.Context())
	ending := errors.New("it ends")
	r.pause = func(ctx context.Context, _ time.Duration) error {
		cancel(ending)
		return ctx.Err()
	}
	if out, err := r.Collect(ctx, results(), r.ownOrder(0, &told)); !errors.Is(err, ending) {
		t.Errorf("%+v, %v", out, err)
	}
}

// slow is a handler's side that is copied only once it may.
type slow struct {
	*left
	begun, may chan struct{}
}

func (s *slow) Collect(
	ctx context.Context, id executor.ID, want executor.Outputs, sink executor.OutputSink,
) error {
	if _, measured := sink.(*measuring); !measured {
		close(s.begun)
		<-s.may
	}
	return s.left.Collect(ctx, id, want, sink)
}

// TestOwnResultsDoNotTakeEachOthersRoom: of two results that fit one by one, and end at once, one is copied when the
// other is there whole: else each could find but a part of its room, leave that part behind, and wait for good.
func TestOwnResultsDoNotTakeEachOthersRoom(t *testing.T) {
	r := newRig(t)
	r.withQuota(20 * 4096) // of big there is room for one
	first := &slow{results(), make(chan struct{}), make(chan struct{})}
	second := results()
	second.files[0].content = bytes.Repeat([]byte("9876543210"), 5000)
	kept, pauses := make(chan error, 1), 0
	r.pause = func(context.Context, time.Duration) error {
		switch pauses++; pauses {
		case 1:
			if n := r.store.Usage(store.Own).Blobs; n != 0 {
				t.Errorf("of the second one %d blobs are there", n)
			}
			close(first.may)
			if err := <-kept; err != nil {
				return err
			}
		case 3:
			r.now = r.now.Add(25 * time.Hour) // the first one's time is over
			_, _, err := r.store.Collect()
			return err
		}
		return nil
	}
	var told []string
	a, b := r.ownOrder(0, nil), r.ownOrder(0, &told)
	a.Waits, b.ID.Task = nil, a.ID.Task+1
	go func() {
		_, err := r.Collect(t.Context(), first, a)
		kept <- err
	}()
	<-first.begun
	out, err := r.Collect(t.Context(), second, b)
	if err != nil || out.Output.Bytes != int64(len(big)+5) || len(r.results) != 2 || pauses != 3 || r.copying != 0 {
		t.Errorf("%+v, %v: %d results after %d pauses, told %q", out, err, len(r.results), pauses, told)
	}
}

// TestOwnResultIsTriedAgain: one that was copied in vain, as when a disk is full that nobody watches, is copied again
// now and then though the store knows of no more room than there was.
func TestOwnResultIsTriedAgain(t *testing.T) {
	r := newRig(t)
	l := results()
	l.err = store.ErrFull
	r.pause = func(_ context.Context, d time.Duration) error {
		if d == longestPause {
			l.err = nil
		}
		return nil
	}
	var told []string
	full := &fullDisk{left: l}
	out, err := r.Collect(t.Context(), full, r.ownOrder(0, &told))
	if err != nil || out.Output.IsZero() || len(told) != 7 || full.copied != 3 {
		t.Errorf("%+v, %v: copied %d times, told %d times", out, err, full.copied, len(told))
	}
}

// fullDisk is a handler's side of which copies, and only these, fail while left.err says so.
type fullDisk struct {
	*left
	copied int
}

func (f *fullDisk) Collect(
	ctx context.Context, id executor.ID, want executor.Outputs, sink executor.OutputSink,
) error {
	if _, measured := sink.(*measuring); measured {
		err := f.err
		f.err = nil
		defer func() { f.err = err }()
	} else {
		f.copied++
	}
	return f.left.Collect(ctx, id, want, sink)
}
