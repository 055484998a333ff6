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
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// contents is a sink.
type contents map[string]string

func (c contents) File(f executor.OutputFile, r io.Reader) error {
	b, err := io.ReadAll(r)
	c[f.Path] = string(b)
	return err
}

func (c contents) Skipped(string, string) {}

// left collects what an attempt has left.
func (o *opened) left(t executor.Task) contents {
	o.Helper()
	c := contents{}
	if err := o.Collect(o.Context(), t.ID, t.Outputs, c); err != nil {
		o.Errorf("%s: %v", t.ID, err)
	}
	return c
}

// leaves makes a task that leaves what the globs name.
func leaves(n uint32, script string, globs ...string) executor.Task {
	t := shell(n, script)
	t.Outputs.Paths = globs
	return t
}

// collectedVar has a process be a broker of that folder that is killed before it collects.
const collectedVar = "BE_UNCOLLECTED"

// uncollected are its tasks: one ends before the kill, one after it.
func uncollected() [2]executor.Task {
	return [2]executor.Task{
		leaves(1, "mkdir -p d/e; echo one >d/e/file; chmod 0 d", "d/"),
		leaves(2, "sleep 1; echo two >file", "file"),
	}
}

func beUncollected(dir string) int {
	cfg := Config{Cores: 2, Contain: ContainAll}
	if cfg.Dir, cfg.Site = dir, "site-2"; os.Getenv(collectedVar+"_BARE") != "" {
		cfg.Contain = ContainNobody
	}
	h, err := Open(cfg)
	if err == nil {
		_, err = h.Adopt(context.Background())
	}
	started := false
	for i, t := range uncollected() {
		if err == nil {
			err = h.Start(context.Background(), t)
		}
		for err == nil && !started {
			e := <-h.Events()
			started = i == 0 && e.Ended != nil || i == 1 && e.Started
		}
		started = false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "ready")
	select {}
}

// TestBrokerKilledBeforeItCollects: kill -9 between an end and its collection, and before
// an end. The next broker collects both.
func TestBrokerKilledBeforeItCollects(t *testing.T) {
	for _, bare := range []string{"", "bare"} {
		cfg := config(t)
		if cfg.Contain = ContainAll; bare != "" {
			cfg.Contain = ContainNobody
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), collectedVar+"="+cfg.Dir, collectedVar+"_BARE="+bare)
		cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		said, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err = cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(said).ReadString('\n'); line != "ready\n" {
			t.Fatalf("the broker said %q, %v", line, err)
		}
		if err = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		o, states := adopted(t, cfg)
		tasks := uncollected()
		if len(states) != 2 {
			t.Fatalf("adopted %+v", states)
		}
		if states[1].Running {
			o.end(tasks[1])
		}
		if one, two := o.left(tasks[0]), o.left(tasks[1]); one["d/e/file"] != "one\n" || two["file"] != "two\n" {
			t.Errorf("bare %q: collected %v and %v", bare, one, two)
		}
	}
}

// TestMovingGoesOn: a broker that is killed while it moves files out of a sandbox leaves the rest to the next one.
func TestMovingGoesOn(t *testing.T) {
	cfg := config(t)
	cfg.Contain = ContainAll
	o := open(t, cfg)
	if _, err := o.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	task := leaves(1, "echo a >a; echo b >b", "a", "b")
	o.run(task)
	work := filepath.Join(o.slotOf(task).dir, "work")
	kept := o.workPath(task.ID.String())
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	awaitSupervisors(t, cfg.Dir)
	err := os.Rename(kept, kept+partly)
	if err = errors.Join(err, os.Rename(filepath.Join(kept+partly, "b"), filepath.Join(work, "b"))); err != nil {
		t.Fatal(err)
	}
	o, _ = adopted(t, cfg)
	if c := o.left(task); c["a"] != "a\n" || c["b"] != "b\n" {
		t.Errorf("collected %v", c)
	}
	if err := o.Forget(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil { // it waits for the removal
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(kept)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestManyNamesSpendASandbox: more than are moved one by one, and the next task has another sandbox.
func TestManyNamesSpendASandbox(t *testing.T) {
	cfg := config(t)
	cfg.Contain = ContainAll
	o, _ := adopted(t, cfg)
	task := leaves(1, fmt.Sprintf("i=0; while [ $i -lt %d ]; do : >f$i; i=$((i+1)); done", mostMoved+1), "f*")
	o.run(task)
	if c := o.left(task); len(c) != mostMoved+1 {
		t.Errorf("collected %d files", len(c))
	}
	next := shell(2, "[ -z \"$(ls -A)\" ]")
	if r := o.run(next); r.ExitCode != 0 || o.slotOf(next) == o.slotOf(task) {
		t.Errorf("the next task: %+v, in the same sandbox: %v", r, o.slotOf(next) == o.slotOf(task))
	}
}

// TestFilesCountAsScratch: what would be over its scratch by its files is refused, and what is over it with them ends.
func TestFilesCountAsScratch(t *testing.T) {
	o := scratched(t, func(*Config) {})
	big := shell(1, "exit 0")
	big.Files = []executor.File{{Path: "in", Content: make([]byte, 9<<20)}}
	if err := o.Start(t.Context(), big); !errors.Is(err, executor.ErrUnfit) || !strings.Contains(err.Error(), "scratch") {
		t.Errorf("got %v, want it unfit", err)
	}
	over := shell(2, "head -c 5000000 /dev/zero >out; while :; do sleep 3600; done")
	over.Files = []executor.File{{Path: "in", Content: make([]byte, 5<<20)}}
	if r := o.run(over); !strings.Contains(r.Detail, "over its scratch") {
		t.Errorf("got %+v, want it over its scratch", r)
	}
}

// TestFilesAreTheTasksOwn: of its user, as a file that a program makes.
func TestFilesAreTheTasksOwn(t *testing.T) {
	cfg := config(t)
	cfg.Contain = ContainAll
	o, _ := adopted(t, cfg)
	task := leaves(1, "touch made; [ -O in ] && [ -O d ] && [ -O d/run ] && stat -c %a in made d d/run && chmod 600 in && rm -r d", "in")
	task.Files = []executor.File{{Path: "in"}, {Path: "d/run", Executable: true}}
	if r := o.run(task); r.ExitCode != 0 {
		t.Errorf("got %+v, %q", r, o.output(task))
	}
	if got := o.output(task); got != "644\n644\n755\n755\n" {
		t.Errorf("modes %q", got)
	}
}

// TestForgottenFilesGo: those of attempts that were forgotten, and of those that nobody knows, do not stay.
func TestForgottenFilesGo(t *testing.T) {
	cfg := config(t)
	o := open(t, cfg)
	if _, err := o.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	task := leaves(1, "mkdir d; echo x >d/x; chmod 0 d", "d/")
	o.run(task)
	if err := errors.Join(o.Close(), os.MkdirAll(o.workPath("site-9.9-9-9-9"), 0o700)); err != nil {
		t.Fatal(err)
	}
	o = open(t, cfg)
	if _, err := o.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := o.left(task); c["d/x"] != "x\n" {
		t.Errorf("collected %v", c)
	}
	if err := errors.Join(o.Forget(t.Context(), task.ID), o.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(cfg.Dir, keptFolder)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
