package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

const patience = 30 * time.Second

// opened is a handler under test; every test ends with all attempts dead.
type opened struct {
	*testing.T
	*Handler
}

func open(t *testing.T, cfg Config) *opened {
	t.Helper()
	h, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.End(ctx); err != nil {
			t.Error(err)
		}
	})
	return &opened{t, h}
}

// slotOf is where an attempt is, or was.
func (o *opened) slotOf(t executor.Task) *slot {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.attempts.Get(t.ID.String()).slot
}

// adopted opens and adopts.
func adopted(t *testing.T, cfg Config) (*opened, []executor.State) {
	t.Helper()
	o := open(t, cfg)
	states, err := o.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o, states
}

func config(t *testing.T) Config {
	return Config{Keeping: attempts.Keeping{Dir: t.TempDir(), Site: "site-2", Grace: 200 * time.Millisecond}, Cores: 2}
}

func shell(n uint32, script string) executor.Task {
	return executor.Task{
		ID:    executor.ID{Job: "site-1.9", Task: n, Attempt: 1, Token: uint64(n)},
		Owner: "site-1", Site: "site-2", Need: executor.Resources{MilliCPU: 1000}, Command: []string{"/bin/sh", "-c", script},
	}
}

func (o *opened) begin(t executor.Task) {
	o.Helper()
	if err := o.Start(o.Context(), t); err != nil {
		o.Fatal(err)
	}
}

// end waits for an attempt's end.
func (o *opened) end(t executor.Task) executor.Result {
	o.Helper()
	late := time.After(patience)
	for {
		select {
		case e, ok := <-o.Events():
			if !ok {
				o.Fatal("events closed")
			}
			if e.ID == t.ID && e.Ended != nil {
				return *e.Ended
			}
		case <-late:
			o.Fatalf("no end of %s", t.ID)
		}
	}
}

func (o *opened) run(t executor.Task) executor.Result {
	o.Helper()
	o.begin(t)
	return o.end(t)
}

// firstLine waits for an attempt's first line of output.
func (o *opened) firstLine(t executor.Task) string {
	o.Helper()
	rc, err := o.Logs(o.Context(), t.ID, "stdout", true)
	if err != nil {
		o.Fatal(err)
	}
	defer rc.Close()
	s, err := bufio.NewReader(rc).ReadString('\n')
	if err != nil {
		o.Fatal(err)
	}
	return strings.TrimSpace(s)
}

func (o *opened) output(t executor.Task) string {
	o.Helper()
	rc, err := o.Logs(o.Context(), t.ID, "stdout", false)
	if err != nil {
		o.Fatal(err)
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	if err != nil {
		o.Fatal(err)
	}
	return string(b)
}

// witness makes a fifo; gone is closed when all that held it are dead.
func witness(t *testing.T) (fifo string, gone <-chan struct{}) {
	t.Helper()
	fifo = filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		if f, err := os.Open(fifo); err == nil {
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
	}()
	return fifo, ch
}

func within(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("not after %s: %s", patience, what)
	}
}

// escaping is a task with a child in a session of its own, deaf to TERM.
func escaping(n uint32, fifo string) executor.Task {
	return shell(n, "exec 3>"+fifo+`; setsid sh -c 'trap "" TERM; echo up; while :; do sleep 3600; done' & wait; wait`)
}

// TestKilledSupervisor: its attempt is reported as an orphan, and nothing of it lives
// on, whatever the machine offers for it.
func TestKilledSupervisor(t *testing.T) {
	for _, noCgroups := range []bool{false, true} {
		t.Run(fmt.Sprintf("noCgroups=%v", noCgroups), func(t *testing.T) {
			cfg := config(t)
			cfg.NoCgroups = noCgroups
			o, _ := adopted(t, cfg)
			fifo, gone := witness(t)
			task := escaping(1, fifo)
			o.begin(task)
			o.firstLine(task)
			killSupervisor(t, o.slotOf(task).pid)
			if r := o.end(task); r.Cause != executor.Orphaned || r.Detail == "" || r.Run <= 0 || r.Started.IsZero() {
				t.Errorf("got %+v, want Orphaned, for how long it ran, and why", r)
			}
			within(t, gone, "the whole tree is dead")
			if got := o.output(task); got != "up\n" {
				t.Errorf("got %q, want what it wrote before", got)
			}
			if r := o.run(shell(2, "exit 5")); r.ExitCode != 5 {
				t.Errorf("the next: got %+v, want exit code 5", r)
			}
		})
	}
}

// killSupervisor returns when it is dead.
func killSupervisor(t *testing.T, pid int) {
	t.Helper()
	signalSupervisor(t, pid, unix.SIGKILL)
}

// signalSupervisor returns when it has ended.
func signalSupervisor(t *testing.T, pid int, sig unix.Signal) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatalf("the process does not end: %v", err)
		}
	}
}

// TestSupervisorKilledWhileNobodyLooks: Adopt settles it, once and for all.
func TestSupervisorKilledWhileNobodyLooks(t *testing.T) {
	cfg := config(t)
	o, _ := adopted(t, cfg)
	fifo, gone := witness(t)
	task := escaping(1, fifo)
	o.begin(task)
	o.firstLine(task)
	pid := o.slotOf(task).pid
	o.Close()
	killSupervisor(t, pid)
	for range 2 {
		var states []executor.State
		o, states = adopted(t, cfg)
		if len(states) != 1 || states[0].Running || states[0].Ended.Cause != executor.Vanished {
			t.Errorf("got %+v, want one that vanished", states)
		}
		o.Close()
	}
	within(t, gone, "the whole tree is dead")
}

// TestIdleSupervisorsKilled: the next attempt gets another one.
func TestIdleSupervisorsKilled(t *testing.T) {
	o, _ := adopted(t, config(t))
	first := shell(1, "exit 0")
	o.run(first)
	killSupervisor(t, o.slotOf(first).pid)
	for n := uint32(2); n < 8; n++ {
		if r := o.run(shell(n, "exit 5")); r.ExitCode != 5 {
			t.Errorf("got %+v, want exit code 5", r)
		}
	}
}

// TestMachineRestarted: what an earlier boot left running is lost.
func TestMachineRestarted(t *testing.T) {
	cfg := config(t)
	dir := filepath.Join(cfg.Dir, "slots", "old")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	task := shell(1, "exit 0")
	for _, l := range []line{{Sup: &owner{Pid: os.Getpid(), Boot: "another boot"}}, {Ask: &asked{Task: task}}} {
		if _, err = appendLine(f, l); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	o, states := adopted(t, cfg)
	if len(states) != 1 || states[0].Ended == nil || states[0].Ended.Cause != executor.Vanished ||
		!strings.Contains(states[0].Ended.Detail, "restarted") {
		t.Fatalf("got %+v, want it lost with the machine", states)
	}
	if err := o.Forget(t.Context(), task.ID); err != nil {
		t.Error(err)
	}
}

// TestMain's second role: a broker that starts one task and waits to be killed.
func beBroker(dir string) int {
	h, err := Open(Config{Keeping: attempts.Keeping{Dir: dir, Site: "site-2", Grace: 200 * time.Millisecond}, Cores: 2})
	if err == nil {
		_, err = h.Adopt(context.Background())
	}
	if err == nil {
		err = h.Start(context.Background(), shell(1, "echo up; sleep 0.3; echo on; exit 6"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for e := range h.Events() {
		if e.Started {
			fmt.Fprintln(os.Stdout, "started")
		}
	}
	return 0
}

// TestBrokerKilled: kill -9 of the broker's whole process group reaches no
// supervisor; the next broker finds the attempt and hears its end.
func TestBrokerKilled(t *testing.T) {
	cfg := config(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "BE_BROKER="+cfg.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, rerr := bufio.NewReader(out).ReadString('\n'); s != "started\n" {
		t.Fatalf("broker says %q, %v", s, rerr)
	}
	if open, oerr := Open(cfg); !errors.Is(oerr, attempts.ErrInUse) {
		t.Errorf("a second broker on its directory: got %v, %v; want attempts.ErrInUse", open, oerr)
	}
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	o, states := adopted(t, cfg)
	task := shell(1, "")
	if len(states) != 1 || states[0].ID != task.ID {
		t.Fatalf("got %+v, want the one attempt", states)
	}
	r := states[0].Ended
	if r == nil {
		e := o.end(task)
		r = &e
	}
	if r.Cause != executor.Exited || r.ExitCode != 6 {
		t.Errorf("got %+v, want exit code 6", r)
	}
	if got := o.output(task); got != "up\non\n" {
		t.Errorf("got %q", got)
	}
}

// TestSupervisorServesAfterAKill: regression: a kernel may kill whatever is
// cloned into a cgroup that was killed before, so such a group must go.
func TestSupervisorServesAfterAKill(t *testing.T) {
	cfg := config(t)
	cfg.Cores = 1
	o, _ := adopted(t, cfg)
	first := shell(1, "setsid sleep 3600 & exit 0")
	o.run(first)
	for n := uint32(2); n < 5; n++ {
		task := shell(n, "exit 5")
		if r := o.run(task); r.ExitCode != 5 {
			t.Errorf("got %+v, want exit code 5", r)
		}
		if o.slotOf(task) != o.slotOf(first) {
			t.Error("another supervisor ran it: the test shows nothing")
		}
	}
}

// TestSweepFindsWhatExecs: a process has no environment for a moment of each exec.
func TestSweepFindsWhatExecs(t *testing.T) {
	for range 20 {
		cfg := config(t)
		cfg.NoCgroups = true
		o, _ := adopted(t, cfg)
		fifo, gone := witness(t)
		script := filepath.Join(t.TempDir(), "again")
		if err := os.WriteFile(script, []byte("exec sh "+script), 0o600); err != nil {
			t.Fatal(err)
		}
		task := shell(1, "exec 3>"+fifo+"; echo up; setsid sh "+script+" & wait")
		o.begin(task)
		o.firstLine(task)
		killSupervisor(t, o.slotOf(task).pid)
		o.end(task)
		within(t, gone, "what execs is dead")
	}
}

// TestStoppedBeforeItBegins: an attempt was handed over by a broker that is gone; the
// next one's stop is not lost, though the supervisor has heard of neither yet.
func TestStoppedBeforeItBegins(t *testing.T) {
	for _, late := range slices.Repeat([]bool{false, true}, 5) {
		o, _ := unwarmed(t)
		first, second := shell(1, "true"), shell(2, "sleep 1000")
		o.run(first)
		s := o.slotOf(first)
		pid := s.pid
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if late { // a stop that crossed the end that it was for
			if _, err := fmt.Fprintf(s.conn, "stop %s too late", first.ID); err != nil {
				t.Fatal(err)
			}
		}
		o.begin(second)
		o.Close()
		next, _ := adopted(t, o.cfg)
		err := next.Stop(t.Context(), second.ID, "no longer wanted")
		if err = errors.Join(err, unix.Kill(pid, unix.SIGCONT)); err != nil {
			t.Fatal(err)
		}
		if r := next.end(second); r.Cause != executor.Stopped {
			t.Errorf("got %+v, want it stopped", r)
		}
	}
}
