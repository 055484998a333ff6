package local

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

// startEvader starts one in ./work and in a group, if there is one.
func startEvader(t *testing.T, g *group) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir, cmd.Env, cmd.Stderr = "work", append(os.Environ(), evadeVar+"=1"), os.Stderr
	if g.fd >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.fd}
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // as it is, frozen or not
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
		g.close()
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "hidden\n" {
		t.Fatalf("the evader says %q, %v", said, err)
	}
}

// tight is a bound below what the evader has.
func tight(f *freezer) *scratch {
	return &scratch{most: diskuse.Use{Bytes: 8 << 20, Files: 1 << 20}, before: diskuse.Use{Bytes: -1 << 60}, freezer: f}
}

// TestLooksAreEvaded: a task that watches looks hides a file from them, unless it is frozen.
func TestLooksAreEvaded(t *testing.T) {
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	os.Args[0] = program
	t.Chdir(t.TempDir())
	if err = os.Mkdir("work", 0o700); err != nil {
		t.Fatal(err)
	}
	c := findCgroups(t.TempDir())
	defer c.close()
	where := ""
	if c.kill != "" {
		where = filepath.Join(c.kill, "evader")
	}
	g := newGroup(where, "", false, false, 0, ioMax{})
	startEvader(t, g)
	if !eventually(time.Minute, func() bool {
		s := tight(nil)
		s.measure()
		return s.said.Load() == nil
	}) {
		t.Error("each look finds the file: this evader shows nothing")
	}
	if g.fd < 0 {
		return // nothing can be frozen here
	}
	found := 0
	if !eventually(time.Minute, func() bool {
		s := tight(g.freezer())
		switch err = s.countStill(s.counter(), time.Second); {
		case errors.Is(err, diskuse.ErrOver):
			found++
		case !errors.Is(err, errLate): // a busy machine looks too slowly
			t.Errorf("a look at a frozen task does not find its file: %v", err)
		}
		if s.freezer.frozen {
			t.Error("the task is left frozen")
		}
		return found == 10
	}) {
		t.Errorf("only %d looks at a frozen task were in time", found)
	}
	if err = g.freezer().freeze(); err != nil { // it dies so, too
		t.Error(err)
	}
}

// TestEvasionIsHeld: the same in a sandbox. It ends as one that does not hide.
func TestEvasionIsHeld(t *testing.T) {
	o := scratched(t, func(*Config) {})
	if !o.groups.lendsV2() {
		return // the guide says so
	}
	task := shell(1, "")
	task.Command, task.Env, task.Timeout = []string{os.Args[0]}, map[string]string{evadeVar: "1"}, time.Minute
	if r := o.run(task); r.Cause != executor.Exited || !strings.Contains(r.Detail, "over its scratch: more than 8Mi") {
		t.Errorf("got %+v, want it over its scratch; it says %q", r, o.output(task))
	}
}

// TestFrozenTasksEnd: the timeout, a stop and the fence end a task that is frozen, and the next one of its sandbox
// runs.
func TestFrozenTasksEnd(t *testing.T) {
	o := scratched(t, func(*Config) {})
	if !o.groups.lendsV2() {
		return
	}
	for n, end := range []executor.Cause{executor.TimedOut, executor.Stopped, executor.Fenced} {
		task := shell(uint32(n), "echo here; while :; do sleep 3600; done")
		if end == executor.TimedOut {
			task.Timeout = 5 * time.Second
		}
		if end == executor.Fenced {
			task.Fence = executor.Boottime() + int64(12*time.Second) // far enough for its start, and its first output
		}
		o.begin(task)
		o.firstLine(task)
		f := &freezer{dir: filepath.Join(o.groups.kill, o.slotOf(task).name, taskGroup)}
		if err := f.freeze(); err != nil {
			t.Fatal(err)
		}
		var err error
		if end == executor.Stopped {
			err = o.Stop(t.Context(), task.ID, "done")
		}
		if r := o.end(task); err != nil || r.Cause != end {
			t.Errorf("got %+v, %v, want %v", r, err, end)
		}
		f.thaw()
		if r := o.run(shell(uint32(10+n), "exit 3")); r.ExitCode != 3 {
			t.Errorf("the next one: %+v", r)
		}
	}
}

// TestWhoIsFrozen: only who may hide something, and not for long.
func TestWhoIsFrozen(t *testing.T) {
	t.Chdir(t.TempDir())
	free, err := diskuse.Free(".")
	if err != nil {
		t.Fatal(err)
	}
	const most = int64(1) << 50 // what others write meanwhile is nothing beside it
	for name, c := range map[string]struct {
		lost, used int64
		took       time.Duration
		stillAt    int64
		want       bool
	}{
		"nothing lost":  {0, 0, 0, 0, false},
		"explained":     {most, most * 7 / 8, 0, 0, false},
		"not explained": {most, most / 2, 0, 0, true},
		"a large tree":  {most, most / 2, 2 * longFreeze, 0, false},
		"a moment ago":  {most, most / 2, 0, 1 << 62, false},
	} {
		s := &scratch{most: diskuse.Use{Bytes: most, Files: most}, freezer: &freezer{}, stillAt: c.stillAt}
		s.before.Bytes = free.Bytes + c.lost
		if got := s.suspects(diskuse.Use{Bytes: c.used}, c.took); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	late := (&scratch{most: diskuse.Use{Bytes: 1 << 40, Files: 1 << 20}}).counter()
	late.until = 1
	for range 100 {
		err = errors.Join(err, late.Add(1))
	}
	if !errors.Is(err, errLate) {
		t.Errorf("a look goes on after its time: %v", err)
	}
}
