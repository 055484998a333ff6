package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

func TestValidate(t *testing.T) {
	good := Config{Keeping: attempts.Keeping{Dir: "x", Site: "site-1"}}
	if err := good.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"dir":       func(c *Config) { c.Dir = "" },
		"site":      func(c *Config) { c.Site = "" },
		"cores":     func(c *Config) { c.Cores = -1 },
		"memory":    func(c *Config) { c.MemMiB = -1 },
		"io":        func(c *Config) { c.IO.Writes = -1 },
		"grace":     func(c *Config) { c.Grace = -1 },
		"log":       func(c *Config) { c.MaxLogBytes = -1 },
		"retention": func(c *Config) { c.Retention.Bytes = -1 },
		"pin":       func(c *Config) { c.Pin, c.Cores = true, 1<<20 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: got %v, want an error that names it", name, err)
		}
	}
}

func TestStartBeforeAdopt(t *testing.T) {
	o := open(t, config(t))
	if err := o.Start(t.Context(), shell(1, "exit 0")); !errors.Is(err, attempts.ErrNotAdopted) {
		t.Errorf("got %v, want attempts.ErrNotAdopted", err)
	}
}

// TestNothingLeaks: a task has three open files, catches and blocks nothing.
func TestNothingLeaks(t *testing.T) {
	o, _ := adopted(t, config(t))
	for n := uint32(1); n < 4; n++ {
		task := shell(n, "")
		// No shell: it would have files and signals of its own.
		task.Command = []string{"/bin/ls", "/proc/self/fd"}
		o.run(task)
		// The fourth is ls's own, of the directory.
		if got := strings.Fields(o.output(task)); len(got) != 4 {
			t.Errorf("open files %v, want 0, 1, 2 and the directory", got)
		}
	}
	task := shell(9, "")
	task.Command = []string{"/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"}
	o.run(task)
	for l := range strings.Lines(o.output(task)) {
		name, mask, _ := strings.Cut(strings.TrimSpace(l), ":")
		set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		// 32 and 33 are the C library's own: what a test runner made of them
		// before this process began is not ours to undo.
		if set &^= 1<<31 | 1<<32; set != 0 {
			t.Errorf("%s %x: want no signals", name, set)
		}
	}
}

// TestOutputIsCut: the head stays, a marker follows, and the task lives on.
func TestOutputIsCut(t *testing.T) {
	cfg := config(t)
	cfg.MaxLogBytes = 1000
	o, _ := adopted(t, cfg)
	task := shell(1, "i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done; echo done >&2")
	o.begin(task)
	rc, err := o.Logs(t.Context(), task.ID, "stdout", true)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	followed := make(chan string, 1)
	go func() {
		b := make([]byte, 0, 1<<16)
		for {
			n, rerr := rc.Read(b[len(b):cap(b)])
			b = b[:len(b)+n]
			if rerr != nil {
				followed <- string(b)
				return
			}
		}
	}()
	if r := o.end(task); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("got %+v, want a clean exit", r)
	}
	got := o.output(task)
	if !strings.HasPrefix(got, "line 0\nline 1\n") || !strings.HasSuffix(got, watchdog.Marker(1000)) ||
		len(got) != 1000+len(watchdog.Marker(1000)) {
		t.Errorf("got %d bytes that end with %q", len(got), got[max(0, len(got)-80):])
	}
	if f := <-followed; f != got {
		t.Errorf("followed %d bytes, read %d", len(f), len(got))
	}
}

func TestStatusWithoutCgroups(t *testing.T) {
	cfg := config(t)
	cfg.NoCgroups = true
	s := open(t, cfg).Status()
	for _, want := range []string{"memory limits are not enforced: cgroups are switched off", "tasks are pinned to their cores"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q does not say %q", s, want)
		}
	}
}

// TestLargeTasks: journals stay bounded, since full ones are left behind.
func TestLargeTasks(t *testing.T) {
	o, _ := adopted(t, config(t))
	slots := map[string]bool{}
	for n := range uint32(10) {
		task := shell(n, `test ${#V4} = 100000`)
		task.Env = map[string]string{}
		for i := range 5 {
			task.Env[fmt.Sprintf("V%d", i)] = strings.Repeat("v", 100_000)
		}
		if r := o.run(task); r.Cause != executor.Exited || r.ExitCode != 0 {
			t.Fatalf("got %+v, want a clean exit", r)
		}
		slots[o.slotOf(task).name] = true
	}
	if len(slots) < 3 {
		t.Errorf("10 tasks of 500 kB went into %d journals, want three or more", len(slots))
	}
}

func TestBadEnvironment(t *testing.T) {
	o, _ := adopted(t, config(t))
	for i, key := range []string{"", "A=B", "A\x00"} {
		task := shell(uint32(i), "exit 0")
		task.Env = map[string]string{key: "x"}
		if r := o.run(task); r.Cause != executor.NoStart {
			t.Errorf("%q: got %+v, want NoStart", key, r)
		}
	}
}

// TestRetention: of the forgotten only the latest stay, also over a restart, and
// nothing but the store has anything of them.
func TestRetention(t *testing.T) {
	cfg := config(t)
	cfg.Retention = attempts.Retention{Bytes: 3 << 10, Age: time.Hour} // three small ones
	o, _ := adopted(t, cfg)
	keep := shell(100, "echo not forgotten")
	o.run(keep)
	for n := range uint32(6) {
		task := shell(n, "echo here")
		o.run(task)
		if err := o.Forget(t.Context(), task.ID); err != nil {
			t.Fatal(err)
		}
	}
	o.Close()
	o, states := adopted(t, cfg)
	if len(states) != 1 || states[0].ID != keep.ID {
		t.Fatalf("got %+v, want only the one not forgotten", states)
	}
	o.attempts.KeepNow()
	logs, err := os.ReadDir(filepath.Join(cfg.Dir, "logs"))
	if err != nil || len(logs) != 1 {
		t.Errorf("got %v, %v; want the logs of one attempt", logs, err)
	}
	if got := o.output(keep); got != "not forgotten\n" {
		t.Errorf("got %q", got)
	}
	for n, want := range []string{"", "", "", "here\n", "here\n", "here\n"} {
		if want != "" && o.output(shell(uint32(n), "")) != want {
			t.Errorf("task %d is not kept", n)
		}
		why, gone := o.RemovedOutput(keep.Job, uint32(n), keep.Attempt)
		if gone != (want == "") || why.ByAge {
			t.Errorf("task %d: removed %v, %+v", n, gone, why)
		}
	}
	if _, err := o.Logs(t.Context(), shell(0, "").ID, "stdout", false); !errors.Is(err, executor.ErrUnknownAttempt) {
		t.Errorf("dropped logs: got %v, want ErrUnknownAttempt", err)
	}
	if err := o.Start(t.Context(), shell(5, "echo again")); !errors.Is(err, executor.ErrUnknownAttempt) {
		t.Errorf("a second run: %v", err)
	}
}

// TestSlotsGoWithTheirAttempts: what has moved into the store leaves no file behind.
func TestSlotsGoWithTheirAttempts(t *testing.T) {
	cfg := config(t)
	o, _ := adopted(t, cfg)
	large := shell(1, "head -c 70000 /dev/zero; echo small >&2")
	small := shell(2, "echo here")
	for _, task := range []executor.Task{large, small} {
		o.run(task)
		if err := o.Forget(t.Context(), task.ID); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := o.Logs(t.Context(), small.ID, "stdout", false)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	o.attempts.KeepNow()
	if b, rerr := io.ReadAll(reader); rerr != nil || string(b) != "here\n" {
		t.Errorf("who had it open read %q, %v", b, rerr)
	}
	if names, _ := filepath.Glob(filepath.Join(cfg.Dir, "logs", "*")); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	o.Close()
	o, _ = adopted(t, cfg)
	o.attempts.KeepNow()
	if len(o.output(large)) != 70_000 || o.output(small) != "here\n" {
		t.Error("after a restart the output is another")
	}
}

// TestFindsEarlierAttempts: what users ask for by number, also once forgotten.
func TestFindsEarlierAttempts(t *testing.T) {
	o, _ := adopted(t, config(t))
	task := shell(4, "echo kept")
	o.run(task)
	if err := o.Forget(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	id, err := o.Find(task.Job, task.ID.Task, task.Attempt)
	if err != nil || id != task.ID {
		t.Errorf("found %v, %v", id, err)
	}
	if _, err := o.Find(task.Job, task.ID.Task, task.Attempt+1); !errors.Is(err, executor.ErrUnknownAttempt) {
		t.Errorf("an attempt that never was: %v", err)
	}
}
