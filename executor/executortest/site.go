package executortest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// busySeconds is how long a task of testCores keeps two processes busy.
const busySeconds = 2

// testCores: a task has no more time of the processors than the cores that it asked
// for, though it has two busy processes; the shell counts.
func testCores(r *Rig) {
	if r.env.NoCores != "" {
		r.Logf("not shown here: %s", r.env.NoCores)
		return
	}
	busy := fmt.Sprintf("timeout %d sh -c 'while :; do :; done' & ", busySeconds)
	id := r.Begin(r.shell(busy + busy + "wait; times"))
	res := r.AwaitEnd(id)
	if res.Cause != executor.Exited || res.ExitCode != 0 {
		r.Fatalf("got %+v, want a clean exit", res)
	}
	var used time.Duration
	for _, text := range strings.Fields(r.Written(id, "stdout")) {
		d, err := time.ParseDuration(text) // 0m1.23s
		r.Must(err)
		used += d
	}
	if used == 0 || used > res.Run*115/100 {
		r.Errorf("a task of one core used %s of the processors in %s; %s", used, res.Run, r.Status())
	}
}

// testSiteTrouble: what a site cannot start, by no fault of the task's, is handed back
// with the reason: by Start, or as Declined. Nothing of it ran, and once the site is
// mended tasks run.
func testSiteTrouble(r *Rig) {
	if r.env.Break == nil {
		r.Logf("not shown here: %s", r.env.NoBreak)
		return
	}
	r.run(r.task("/bin/true"))
	mend := r.env.Break(r.T, r.Handler)
	t := r.shell("echo ran")
	switch err := r.Start(r.Context(), t); {
	case err == nil:
		if res := r.AwaitEnd(t.ID); res.Cause != executor.Declined || res.Detail == "" || !res.Started.IsZero() ||
			r.Started[t.ID] {
			r.Errorf("got %+v, want it Declined with the reason", res)
		}
		if got := r.Written(t.ID, "stdout"); got != "" {
			r.Errorf("it ran: %q", got)
		}
		r.Must(r.Forget(r.Context(), t.ID))
	case errors.Is(err, executor.ErrUnfit):
		r.Errorf("got %v, which is the task's fault", err)
	}
	mend()
	if res := r.run(r.task("/bin/true")); res.Cause != executor.Exited || res.ExitCode != 0 {
		r.Errorf("once the site is mended: got %+v, want a clean exit", res)
	}
}

// testWeighed: what a running attempt has written to the broker's disk is told, and nothing of one that has ended.
// Handlers whose tasks write elsewhere tell nothing.
func testWeighed(r *Rig) {
	w, ok := r.Handler.(executor.Weigher)
	if !ok {
		return
	}
	const size = 6_000_000
	id := r.Begin(r.shell(fmt.Sprintf("mkdir d && head -c %d /dev/zero >d/file && echo there; exec sleep 300", size)))
	r.AwaitRunning(id)
	rc, err := r.Logs(r.Context(), id, "stdout", true)
	r.Must(err)
	said, err := io.ReadFull(rc, make([]byte, len("there")))
	r.Must(errors.Join(err, rc.Close()))
	if got := w.Weigh(r.Context(), id); said == 0 || got < size || got > 2*size {
		r.Errorf("%d bytes are told of one that has %d", got, size)
	}
	r.Must(r.Stop(r.Context(), id, "enough"))
	r.AwaitEnd(id)
	for _, gone := range []executor.ID{id, {Job: "site-9.9"}} {
		if got := w.Weigh(r.Context(), gone); got > 0 {
			r.Errorf("%d bytes are told of %s, which does not run", got, gone)
		}
	}
}
