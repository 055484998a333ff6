package executortest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

func writeFile(path, s string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s)
	return errors.Join(err, f.Close())
}

func testDuplicate(r *Rig) {
	fifo := r.fifo()
	t := r.shell("echo ran; read x <" + fifo)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = r.Start(r.Context(), t) })
	}
	wg.Wait()
	r.Must(errors.Join(errs...))
	r.AwaitRunning(t.ID)
	r.Begin(t)
	r.write(fifo)
	r.AwaitEnd(t.ID)
	r.Begin(t)
	r.run(r.task("/bin/true")) // had it run again, its events would come first
	if got := r.Written(t.ID, "stdout"); got != "ran\n" {
		r.Errorf("got %q, want one run", got)
	}
}

func testCapacity(r *Rig) {
	r.machine()
	ms := r.Capacity()
	if !slices.IsSortedFunc(ms, func(a, b executor.Machine) int { return strings.Compare(a.Name, b.Name) }) {
		r.Errorf("machines not sorted by name: %v", ms)
	}
	if len(ms) == 0 || ms[0].MilliCPU < 2000 || ms[0].MilliCPU%1000 != 0 || ms[0].MemMiB <= 0 {
		r.Errorf("got %+v, want a machine of two or more whole cores and memory", ms)
	}
	if r.Handler.Name() == "" || r.Status() == "" {
		r.Errorf("name %q, status %q: want both", r.Handler.Name(), r.Status())
	}
}

func testBusy(r *Rig) {
	var ids []executor.ID
	for free := r.machine().MilliCPU; free > 0; free -= 1000 {
		ids = append(ids, r.Begin(r.shell(forever)))
	}
	more := r.shell(forever)
	if err := r.Start(r.Context(), more); !errors.Is(err, executor.ErrBusy) {
		r.Fatalf("on a full machine: got %v, want ErrBusy", err)
	}
	r.Must(r.Stop(r.Context(), ids[0], "make room"))
	r.AwaitEnd(ids[0])
	ids[0] = r.Begin(more) // the end was told, so the room is there
	for _, id := range ids {
		r.Must(r.Stop(r.Context(), id, "done"))
		r.AwaitEnd(id)
	}
}

func testAdoptRunning(r *Rig) {
	fifo := r.fifo()
	t := r.shell("echo up; read x <" + fifo + "; echo down; exit 7")
	t.Need.MilliCPU = r.machine().MilliCPU
	began := time.Now()
	id := r.Begin(t)
	r.AwaitRunning(id)
	st := r.find(r.reopen(), id)
	if !st.Running || st.Ended != nil || st.Owner != t.Owner || !slices.Equal(st.Command, t.Command) {
		r.Fatalf("got %+v, want it running as it was asked", st)
	}
	if st.Started.Before(began) || st.Started.After(time.Now()) {
		r.Errorf("it began at %s, want between %s and now", st.Started, began)
	}
	if err := r.Start(r.Context(), r.task("/bin/true")); !errors.Is(err, executor.ErrBusy) {
		r.Errorf("beside an adopted one that fills the machine: got %v, want ErrBusy", err)
	}
	r.Begin(t) // still one run
	out := r.followStdout(id)
	if got := r.line(out); got != "up" {
		r.Errorf("got %q, want up", got)
	}
	r.write(fifo)
	if got := r.line(out); got != "down" {
		r.Errorf("got %q, want down", got)
	}
	if res := r.AwaitEnd(id); res.Cause != executor.Exited || res.ExitCode != 7 || res.Run <= 0 {
		r.Errorf("got %+v, want exit code 7", res)
	}
	if got := r.Written(id, "stdout"); got != "up\ndown\n" {
		r.Errorf("got %q", got)
	}
	r.run(r.task("/bin/true"))
}

func testAdoptEnded(r *Rig) {
	t := r.shell("echo said; exit 3")
	res := r.run(t)
	fifo, held := r.fifo(), r.fifo()
	gone := r.holders(held)
	blind := r.shell("exec 3>" + held + "; read x <" + fifo + "; exit 4")
	r.Begin(blind)
	r.AwaitRunning(blind.ID)
	r.Must(r.Close())
	r.write(fifo) // it ends while nobody looks
	r.within(gone, "the writer is done")
	states := r.Open()
	st := r.find(states, t.ID)
	if st.Running || st.Ended == nil || st.Ended.ExitCode != 3 || !st.Ended.Started.Equal(res.Started) {
		r.Errorf("got %+v, want its result %+v", st.Ended, res)
	}
	if got := r.Written(t.ID, "stdout"); got != "said\n" {
		r.Errorf("got %q, want its output", got)
	}
	st = r.find(states, blind.ID)
	if st.Running {
		r.AwaitEnd(blind.ID)
		r.find(r.reopen(), blind.ID)
	}
	if got := r.find(r.reopen(), blind.ID); got.Ended == nil || got.Ended.ExitCode != 4 {
		r.Errorf("got %+v, want exit code 4", got.Ended)
	}
}

func testAdoptedStop(r *Rig) {
	fifo := r.fifo()
	gone := r.holders(fifo)
	id := r.Begin(r.shell("exec 3>" + fifo + "; " + forever))
	r.line(r.followStdout(id))
	r.reopen()
	r.Must(r.Stop(r.Context(), id, "test"))
	if res := r.AwaitEnd(id); res.Cause != executor.Stopped {
		r.Errorf("got %+v, want Stopped", res)
	}
	r.within(gone, "it is dead")
}

func testForget(r *Rig) {
	t := r.shell("echo kept")
	r.run(t)
	run := r.shell(forever)
	r.Begin(run)
	if err := r.Forget(r.Context(), run.ID); err == nil {
		r.Error("a running attempt was forgotten")
	}
	r.Must(r.Forget(r.Context(), t.ID))
	if got := r.Written(t.ID, "stdout"); got != "kept\n" {
		r.Errorf("logs after forget: got %q", got)
	}
	states := r.reopen()
	if len(states) != 1 || states[0].ID != run.ID {
		r.Errorf("got %v, want only the running one", states)
	}
	if got := r.Written(t.ID, "stdout"); got != "kept\n" {
		r.Errorf("logs after forget and restart: got %q", got)
	}
	if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrUnknownAttempt) {
		r.Errorf("a forgotten attempt starts again: %v", err)
	}
	if err := r.Forget(r.Context(), r.task("x").ID); !errors.Is(err, executor.ErrUnknownAttempt) {
		r.Errorf("got %v, want ErrUnknownAttempt", err)
	}
}

func testCloseLeaves(r *Rig) {
	fifo := r.fifo()
	id := r.Begin(r.shell("read x <" + fifo + "; exit 9"))
	r.AwaitRunning(id)
	r.Must(r.Close())
	r.Must(r.Close())
	if err := r.Start(r.Context(), executor.Task{}); err == nil {
		r.Error("a closed handler starts things")
	}
	if st := r.find(r.Open(), id); !st.Running {
		r.Fatalf("got %+v, want it running", st)
	}
	r.write(fifo)
	if res := r.AwaitEnd(id); res.ExitCode != 9 {
		r.Errorf("got %+v, want exit code 9", res)
	}
}

func testEnd(r *Rig) {
	fifo := r.fifo()
	gone := r.holders(fifo)
	mine := r.Begin(r.shell("exec 3>" + fifo + "; " + forever))
	r.line(r.followStdout(mine))
	r.reopen()
	other := r.Begin(r.shell(forever))
	ctx, cancel := context.WithTimeout(r.Context(), r.env.Patience)
	defer cancel()
	r.Must(r.End(ctx))
	r.within(gone, "the adopted one is dead")
	states := r.Open()
	for _, id := range []executor.ID{mine, other} {
		if st := r.find(states, id); st.Ended == nil || st.Ended.Cause != executor.Stopped {
			r.Errorf("got %+v, want it stopped", st)
		}
	}
}

func testPublished(r *Rig) {
	r.Published(executor.Demand{Tasks: 12, MilliCPU: 12_000})
	r.run(r.task("/bin/true"))
}

// testMany: short tasks in turn, several at a time; each ends exactly once.
func testMany(r *Rig) {
	all := r.many(200)
	free := int(r.machine().MilliCPU / 1000)
	begun, deadline := 0, time.Now().Add(r.env.Patience)
	for len(r.Ended) < all && time.Now().Before(deadline) {
		for ; begun < all && begun-len(r.Ended) < free; begun++ {
			r.Begin(r.task("/bin/true"))
		}
		n := len(r.Ended)
		r.Hear("an end", func() bool { return len(r.Ended) > n })
	}
	for id, res := range r.Ended {
		if res.Cause != executor.Exited || res.ExitCode != 0 || !r.Started[id] {
			r.Errorf("%s: got %+v, want a clean exit after a start", id, res)
		}
	}
}
