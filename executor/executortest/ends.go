package executortest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// forever runs until it is killed.
const forever = "echo up; while :; do sleep 3600; done"

func testFinish(r *Rig) {
	before := time.Now()
	t := r.task("/bin/true")
	res := r.run(t)
	if !r.Started[t.ID] {
		r.Error("ended without having started")
	}
	if res.Cause != executor.Exited || res.ExitCode != 0 || res.Signal != 0 {
		r.Errorf("got %+v, want a clean exit", res)
	}
	if res.Started.Before(before.Add(-time.Second)) || res.Started.After(time.Now().Add(time.Second)) {
		r.Errorf("started at %s, but it is %s", res.Started, time.Now())
	}
	if res.Run <= 0 || res.Run > r.env.Patience {
		r.Errorf("ran for %s", res.Run)
	}
}

func testExitCode(r *Rig) {
	res := r.run(r.shell("exit 42"))
	if res.Cause != executor.Exited || res.ExitCode != 42 || res.Signal != 0 || res.Detail == "" {
		r.Errorf("got %+v, want exit code 42 and a word on it", res)
	}
}

func testSignal(r *Rig) {
	res := r.run(r.shell("kill -SEGV $$"))
	if res.Cause != executor.Exited || res.Signal != int(syscall.SIGSEGV) {
		r.Errorf("got %+v, want an end by signal 11", res)
	}
}

func testNoSuchCommand(r *Rig) {
	for _, cmd := range []string{"no-such-command-here", "/no/such/file", "./missing"} {
		res := r.run(r.task(cmd))
		if res.Cause != executor.NoStart || strings.Contains(res.Detail, filepath.Base(cmd)) || res.Detail == "" {
			r.Errorf("%s: got %+v, want NoStart that does not name it to all members", cmd, res)
		}
	}
	if res := r.run(r.task("/bin/true")); res.Cause != executor.Exited {
		r.Errorf("afterwards: got %+v, want a clean exit", res)
	}
}

func testUnfit(r *Rig) {
	big := r.task("/bin/true")
	big.Need.MilliCPU = r.machine().MilliCPU + 1000
	elsewhere := r.task("/bin/true")
	elsewhere.Machine = "no-such-machine"
	odd := r.task("/bin/true")
	odd.Job = "../../etc"
	for name, t := range map[string]executor.Task{"too big": big, "no such machine": elsewhere, "bad id": odd} {
		if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrUnfit) {
			r.Errorf("%s: got %v, want ErrUnfit", name, err)
		}
	}
}

// testKinds: what a machine says it does not run is refused, for good.
func testKinds(r *Rig) {
	r.machine()
	for _, m := range r.Capacity() {
		for _, image := range []string{"", "example.org/task:1"} {
			t := r.task("/bin/true")
			t.Machine, t.Image = m.Name, image
			if m.Runs.Takes(t) {
				continue
			}
			if err := r.Start(r.Context(), t); !errors.Is(err, executor.ErrUnfit) {
				r.Errorf("image %q on %s: got %v, want ErrUnfit", image, m.Name, err)
			}
		}
	}
}

func testTimeout(r *Rig) {
	t := r.shell(forever)
	t.Timeout = 300 * time.Millisecond
	res := r.run(t)
	if res.Cause != executor.TimedOut || res.Signal == 0 {
		r.Errorf("got %+v, want TimedOut by a signal", res)
	}
	if res.Run < t.Timeout {
		r.Errorf("killed after %s, before its timeout of %s", res.Run, t.Timeout)
	}
}

func testStop(r *Rig) {
	id := r.Begin(r.shell(forever))
	r.Must(r.Stop(r.Context(), id, "no longer wanted"))
	res := r.AwaitEnd(id)
	if res.Cause != executor.Stopped || !strings.Contains(res.Detail, "no longer wanted") {
		r.Errorf("got %+v, want Stopped with its reason", res)
	}
	r.Must(r.Stop(r.Context(), id, "again"))
}

// testStopTree: a child in a session of its own, and its child, all deaf to
// TERM. Each holds the fifo open for writing; its end is their end.
func testStopTree(r *Rig) {
	fifo := r.fifo()
	deaf := `trap "" TERM; `
	t := r.shell(`exec 3>` + fifo + `; ` + deaf +
		`setsid sh -c '` + deaf + `sh -c "` + `while :; do sleep 3600; done" & while :; do sleep 3600; done' & ` +
		`echo up; while :; do sleep 3600; done`)
	id := r.Begin(t)
	gone := r.holders(fifo)
	r.line(r.followStdout(id))
	began := time.Now()
	r.Must(r.Stop(r.Context(), id, "test"))
	res := r.AwaitEnd(id)
	if res.Cause != executor.Stopped || res.Signal != int(syscall.SIGKILL) {
		r.Errorf("got %+v, want Stopped by KILL", res)
	}
	if d := time.Since(began); d < r.env.Grace/2 {
		r.Errorf("killed after %s: no grace of %s", d, r.env.Grace)
	}
	r.within(gone, "the whole tree is dead")
}

func testStopUnknown(r *Rig) {
	r.Must(r.Stop(r.Context(), r.task("/bin/true").ID, "test"))
}

// testLeftovers: what a task leaves running in the background dies with it.
func testLeftovers(r *Rig) {
	fifo := r.fifo()
	gone := r.holders(fifo)
	res := r.run(r.shell(`exec 3>` + fifo + `; setsid sh -c 'trap "" TERM HUP; while :; do sleep 3600; done' & exit 0`))
	if res.Cause != executor.Exited || res.ExitCode != 0 {
		r.Errorf("got %+v, want a clean exit", res)
	}
	r.within(gone, "the background process is dead")
}

// fifo makes one that tasks can open.
func (r *Rig) fifo() string {
	r.Helper()
	dir := r.TempDir()
	if r.env.Shared != "" {
		var err error
		dir, err = os.MkdirTemp(r.env.Shared, "")
		r.Must(errors.Join(err, os.Chmod(dir, 0o755)))
	}
	path := filepath.Join(dir, "fifo")
	r.Must(errors.Join(syscall.Mkfifo(path, 0o600), os.Chmod(path, 0o666)))
	return path
}

// holders is closed when nobody has the fifo open for writing any more.
func (r *Rig) holders(fifo string) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f, err := os.Open(fifo) // returns when the first writer has come
		if err != nil {
			return
		}
		defer f.Close()
		buf := make([]byte, 16)
		for {
			if _, err := f.Read(buf); err != nil {
				return
			}
		}
	}()
	return gone
}

func (r *Rig) within(ch <-chan struct{}, what string) {
	r.Helper()
	select {
	case <-ch:
	case <-time.After(r.env.Patience):
		r.Fatalf("not after %s: %s", r.env.Patience, what)
	}
}
