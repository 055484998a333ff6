package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// limitFiles sets how many files all idle supervisors may open. They serve by then: the runtime of one that begins
// raises its own limit, keeps the one that it found, and gives that to what it forks. So a limit that is set before has
// a supervisor begin a task whose loader can open nothing; the task's exit code 127 is its own then.
func (o *opened) limitFiles(most uint64) {
	o.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.slots {
		o.awaitUp(s)
		if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: 1 << 12}, nil); err != nil {
			o.Fatal(err)
		}
	}
}

// awaitUp waits until a supervisor has written that it serves.
func (o *opened) awaitUp(s *slot) {
	o.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(s.dir, "journal"))
		if errors.Is(err, os.ErrNotExist) {
			return // it has ended
		}
		if err != nil {
			o.Fatal(err)
		}
		lines, err := readJournal(bytes.NewReader(text))
		if err != nil {
			o.Fatal(err)
		}
		if slices.ContainsFunc(lines, func(l line) bool { return l.Up != nil || l.Sick != nil }) {
			return
		}
		if time.Now().After(end) {
			o.Fatalf("the supervisor of %s does not serve: %s", s.dir, text)
		}
	}
}

// TestNoDescriptorsIsADecline: a supervisor that cannot fork fails no task, hands it
// back with the reason, and serves on once it can.
func TestNoDescriptorsIsADecline(t *testing.T) {
	o, _ := unwarmed(t)
	o.run(shell(1, "true"))
	o.limitFiles(3)
	r := o.run(shell(2, "echo ran"))
	if r.Cause != executor.Declined || !strings.Contains(r.Detail, "too many open files") {
		t.Errorf("got %+v, want Declined with its reason", r)
	}
	if got := o.output(shell(2, "")); got != "" || !r.Started.IsZero() {
		t.Errorf("it ran: %q", got)
	}
	o.limitFiles(1 << 12)
	if r = o.run(shell(3, "true")); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("once it can: %+v", r)
	}
}

// pidsGroup is a cgroup that bounds processes; a test may set how many. It is "" where
// none can be made.
func pidsGroup(t *testing.T) string {
	t.Helper()
	base := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(base + "/cgroup.procs"); err != nil {
		base = "/sys/fs/cgroup"
	}
	dir := filepath.Join(base, fmt.Sprintf("cloudshare-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Logf("no cgroup can be made here: %v", err)
		return ""
	}
	t.Cleanup(func() {
		for range 100 { // the last process may be on its way out
			if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "pids.max")); err != nil {
		t.Logf("no cgroup bounds processes here: %v", err)
		return ""
	}
	return dir
}

// TestNoProcessesIsADecline: four of four tasks of other people ended as failed, with
// "resource temporarily unavailable", where a site had no more processes.
func TestNoProcessesIsADecline(t *testing.T) {
	dir := pidsGroup(t)
	if dir == "" {
		return
	}
	cfg := config(t)
	cfg.NoCgroups = true
	cfg.Executable = filepath.Join(t.TempDir(), "supervisor")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", dir, os.Args[0])
	if err := os.WriteFile(cfg.Executable, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	o := unwarmedIn(t, cfg)
	if r := o.run(shell(1, "true")); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	setMax := func(text string) {
		if err := writeFile(dir, "pids.max", text); err != nil {
			t.Fatal(err)
		}
	}
	setMax("1")
	for n := uint32(2); n < 6; n++ {
		r := o.run(shell(n, "true"))
		// Its supervisor cannot fork; or the Go runtime in it wanted a thread, and it is a
		// new one, which cannot start.
		if r.Cause != executor.Declined || !strings.Contains(r.Detail, "resource temporarily unavailable") &&
			!strings.Contains(r.Detail, "its supervisor died before it served") {
			t.Errorf("got %+v, want Declined with its reason", r)
		}
	}
	setMax("max")
	if r := o.run(shell(6, "true")); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("once there are processes: %+v", r)
	}
}

// TestLostGroupIsMadeAgain: a cgroup that others remove costs no task anything.
func TestLostGroupIsMadeAgain(t *testing.T) {
	o, _ := unwarmed(t)
	if o.groups.kill == "" {
		return
	}
	o.run(shell(1, "true"))
	group := filepath.Join(o.groups.kill, o.slotOf(shell(1, "")).name)
	if err := os.Remove(group); err != nil {
		t.Fatal(err)
	}
	if r := o.run(shell(2, "true")); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Stat(group); err != nil {
		t.Error(err)
	}
}

// TestLostSitesGroupIsMadeAgain: the group above those of all supervisors is made again,
// too. Every task was declined until the broker was started again.
func TestLostSitesGroupIsMadeAgain(t *testing.T) {
	o, _ := unwarmed(t)
	for _, base := range []string{o.groups.kill, o.groups.mem} {
		if base == "" {
			continue
		}
		if err := os.Remove(base); err != nil { // no supervisor has begun
			t.Fatal(err)
		}
	}
	task := shell(1, "true")
	task.Need.MemMiB = 64
	if r := o.run(task); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestNoRoomForOutputIsADecline: a supervisor that cannot make its files begins
// nothing, and says so; what it was given meanwhile is handed back.
func TestNoRoomForOutputIsADecline(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k,nr_inodes=16"); err != nil {
		t.Logf("nothing can be mounted here: %v", err)
		return
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	cfg := config(t)
	cfg.Dir, cfg.NoCgroups = dir, true
	o := unwarmedIn(t, cfg)
	var err error
	// Of 16 inodes the handler has 6 (its folder, lock, fence, slots, logs, supervisors.log);
	// a slot takes two before its supervisor lives, and three after that.
	for i := range 7 {
		if err = os.WriteFile(filepath.Join(dir, fmt.Sprint("full", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = o.Start(t.Context(), shell(1, "true"))
	if err == nil {
		r := o.end(shell(1, ""))
		if r.Cause != executor.Declined || !strings.Contains(r.Detail, "no space left") {
			t.Errorf("got %+v, want Declined with its reason", r)
		}
	} else if !errors.Is(err, unix.ENOSPC) || errors.Is(err, executor.ErrUnfit) {
		t.Errorf("got %v", err)
	}
	for i := range 7 {
		if err = os.Remove(filepath.Join(dir, fmt.Sprint("full", i))); err != nil {
			t.Fatal(err)
		}
	}
	if r := o.run(shell(2, "true")); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("once there is room: %+v", r)
	}
}

// TestBrokerAlwaysStarts: whatever lies among the slots is put aside, and the log says
// what to do.
func TestBrokerAlwaysStarts(t *testing.T) {
	for name, put := range map[string]func(slots string) error{
		"a stray file":           func(s string) error { return os.WriteFile(filepath.Join(s, "core.1234"), nil, 0o600) },
		"a pipe":                 func(s string) error { return unix.Mkfifo(filepath.Join(s, "pipe"), 0o600) },
		"a folder as a journal":  func(s string) error { return os.MkdirAll(filepath.Join(s, "x", "journal"), 0o700) },
		"a pipe as a journal":    inSlot(func(journal string) error { return unix.Mkfifo(journal, 0o600) }),
		"a link as a journal":    inSlot(func(journal string) error { return os.Symlink("/etc/hostname", journal) }),
		"a socket as a journal":  inSlot(func(journal string) error { return unix.Mknod(journal, unix.S_IFSOCK|0o600, 0) }),
		"a device as a journal":  inSlot(func(journal string) error { return unix.Mknod(journal, unix.S_IFCHR|0o600, 1<<8|3) }),
		"a file as all slots":    func(s string) error { return errors.Join(os.Remove(s), os.WriteFile(s, nil, 0o600)) },
		"a slot without journal": func(s string) error { return os.MkdirAll(filepath.Join(s, "z", "work"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			log := new(lines)
			cfg := logged(t, log)
			slots := filepath.Join(cfg.Dir, "slots")
			if err := errors.Join(os.Mkdir(slots, 0o700), put(slots)); err != nil {
				t.Logf("it cannot be made here: %v", err)
				return
			}
			o, _ := adopted(t, cfg)
			if r := o.run(shell(1, "true")); r.Cause != executor.Exited || r.ExitCode != 0 {
				t.Errorf("a task: %+v", r)
			}
			aside, _ := os.ReadDir(filepath.Join(cfg.Dir, attempts.AsideFolder))
			if name == "a slot without journal" {
				if len(aside) != 0 {
					t.Errorf("put aside: %v", aside)
				}
				return
			}
			if len(aside) != 1 || !strings.Contains(log.String(), "was put aside") {
				t.Errorf("put aside: %v; the log: %s", aside, log)
			}
		})
	}
}

func inSlot(put func(journal string) error) func(string) error {
	return func(slots string) error {
		dir := filepath.Join(slots, "y")
		return errors.Join(os.Mkdir(dir, 0o700), put(filepath.Join(dir, "journal")))
	}
}

// nestVar has the test program be a task that nests so many folders.
const nestVar = "BE_NESTING"

func nest(text string) int {
	depth, err := strconv.Atoi(text)
	for range depth {
		if err = errors.Join(err, os.Mkdir("d", 0o700), os.Chdir("d")); err != nil {
			return 1
		}
	}
	return 0
}

// TestDeepFoldersDoNotStopABroker: a task nests folders deeper than there are
// descriptors; they go with its slot, and the broker starts.
func TestDeepFoldersDoNotStopABroker(t *testing.T) {
	cfg := config(t)
	o := unwarmedIn(t, cfg)
	o.run(shell(1, "true"))
	o.limitFiles(64)
	task := shell(2, "")
	task.Command, task.Env = []string{os.Args[0]}, map[string]string{nestVar: "5000"}
	if r := o.run(task); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	slot := o.slotOf(task).dir
	o.run(shell(3, "true")) // what is left of the task is removed before this
	if left, err := filepath.Glob(filepath.Join(slot, "work*")); err != nil || len(left) != 1 {
		t.Errorf("left of it: %v, %v", left, err)
	}
	o.Close()
	adopted(t, cfg)
}

// TestUnusableSlotIsEmptied: nothing that runs in a slot that cannot be adopted is left
// alive: nobody would move its fence, and everybody would take it for lost.
func TestUnusableSlotIsEmptied(t *testing.T) {
	for _, noCgroups := range []bool{false, true} {
		cfg := config(t)
		cfg.NoCgroups = noCgroups
		o, _ := adopted(t, cfg)
		fifo, gone := witness(t)
		task := escaping(1, fifo)
		o.begin(task)
		o.firstLine(task)
		journal := filepath.Join(o.slotOf(task).dir, "journal")
		o.Close()
		if err := errors.Join(os.Remove(journal), unix.Mkfifo(journal, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, states := adopted(t, cfg); len(states) != 0 {
			t.Errorf("adopted %+v", states)
		}
		within(t, gone, "the whole tree is dead")
	}
}

// occupied puts a folder in the place of an attempt's output: it can be neither moved nor
// copied there.
func (o *opened) occupied(t executor.Task) {
	o.Helper()
	if err := os.MkdirAll(filepath.Join(logPath(o.cfg.Dir, t.ID.String(), 0), "full"), 0o700); err != nil {
		o.Fatal(err)
	}
}

// lostOutput wants an attempt's output to be said to be missing, and not to be empty.
func (o *opened) lostOutput(t executor.Task) {
	o.Helper()
	rc, err := o.Logs(o.Context(), t.ID, "stdout", false)
	if err == nil {
		b, rerr := io.ReadAll(rc)
		rc.Close()
		o.Errorf("output that was not kept reads as %q, %v", b, rerr)
	}
}

// TestOutputThatCannotBeKept: output that could not be moved to its place was reported as
// none, so `logs` showed an empty output of a task that had written one.
func TestOutputThatCannotBeKept(t *testing.T) {
	o, _ := unwarmed(t)
	first := shell(1, "echo lost")
	o.occupied(first)
	if r := o.run(first); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Fatalf("the task pays for it: %+v", r)
	}
	o.lostOutput(first)
	next := shell(2, "echo kept")
	if r := o.run(next); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Fatalf("the next: %+v", r)
	}
	if got := o.output(next); got != "kept\n" {
		t.Errorf("the next task's output is %q", got)
	}
}

// TestLostOutputThatCannotBeKept: the same for what a dead supervisor has left.
func TestLostOutputThatCannotBeKept(t *testing.T) {
	o, _ := unwarmed(t)
	task := shell(1, "echo lost; sleep 100")
	o.occupied(task)
	o.begin(task)
	if got := o.firstLine(task); got != "lost" {
		t.Fatalf("it says %q", got)
	}
	if err := unix.Kill(o.slotOf(task).pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := o.end(task); r.Cause != executor.Orphaned {
		t.Fatalf("%+v", r)
	}
	o.lostOutput(task)
}

// TestAbsentCommandIsNamedInItsStderr: its result, which all members read, does not name it.
func TestAbsentCommandIsNamedInItsStderr(t *testing.T) {
	o, _ := unwarmed(t)
	for i, name := range []string{"secret-tool", "/opt/secret/tool"} {
		task := shell(uint32(i)+1, "")
		task.Command = []string{name}
		r := o.run(task)
		rc, err := o.Logs(o.Context(), task.ID, "stderr", false)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(rc)
		_ = rc.Close()
		if err != nil || !strings.Contains(string(text), name) || r.Detail != "its command is not there" {
			t.Errorf("%s: all read %q, its stderr is %q, %v", name, r.Detail, text, err)
		}
	}
}
