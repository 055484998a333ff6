package executortest

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// testOrphan: a task that works, and then ends whatever it finds as its parent, is charged for what it ran, as an
// orphan or because that does not harm its attempt; nothing about it counts as its site's loss.
func testOrphan(r *Rig) {
	const work = 300 * time.Millisecond
	for _, end := range []string{"kill -9 $PPID", "kill $PPID", "kill -ABRT $PPID"} {
		t := r.shell(`echo worked; sleep 0.3; [ $PPID -gt 0 ] && ` + end + `; sleep 0.2; exit 3`)
		res := r.run(t)
		// What watches a task may count whole seconds only, and what it says itself of its end is its own.
		if res.Started.IsZero() || res.Run < work && !r.env.Slow || res.Run > r.env.Patience {
			r.Errorf("%s: began at %s, ran for %s; want at least %s: %+v", end, res.Started, res.Run, work, res)
		}
		if res.Cause != executor.Orphaned && (res.Cause != executor.Exited || res.ExitCode == 0) {
			r.Errorf("%s: got %+v, want an orphan or a failure of its own", end, res)
		}
		if out := r.Written(t.ID, "stdout"); out != "worked\n" {
			r.Errorf("%s: its output is %q", end, out)
		}
	}
	if res := r.run(r.task("/bin/true")); res.Cause != executor.Exited || res.ExitCode != 0 {
		r.Errorf("afterwards: got %+v, want a clean exit", res)
	}
}
