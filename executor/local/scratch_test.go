package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

// scratched is a handler of sandboxes with 8 MiB of scratch for a task.
func scratched(t *testing.T, change func(*Config)) *opened {
	cfg := config(t)
	cfg.Contain, cfg.Scratch = ContainAll, 8<<20
	change(&cfg)
	o, _ := adopted(t, cfg)
	return o
}

// TestScratchIsHeld: a task that has too much on the disk fails by that, wherever it hides it; the
// next one of the same sandbox finds the disk as it was.
func TestScratchIsHeld(t *testing.T) {
	o := scratched(t, func(*Config) {})
	wait := "; while :; do sleep 3600; done"
	for i, script := range []string{
		"head -c 20000000 /dev/zero >file",
		"head -c 20000000 /dev/zero >/var/tmp/file",
		"mkdir deny && head -c 20000000 /dev/zero >deny/file; chmod 0 deny .",
		"for i in 1 2 3 4 5; do head -c 4000000 /dev/zero >/tmp/$i; done",
		"exec 9>gone; rm gone; head -c 20000000 /dev/zero >&9", // no folder shows it
	} {
		r := o.run(shell(uint32(i), script+wait))
		if r.Cause != executor.Exited || r.ExitCode != 137 || !strings.Contains(r.Detail, "over its scratch: more than 8Mi") {
			t.Errorf("%s: got %+v, want it over its scratch", script, r)
		}
	}
	fine := shell(50, "head -c 4000000 /dev/zero >file; ln file link; truncate -s 1G sparse 2>/dev/null; sleep 3")
	if r := o.run(fine); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("within its bounds: got %+v", r)
	}
}

// TestScratchBeyondOutput: blocks that are allocated beyond the end of output count, and go with the attempt.
func TestScratchBeyondOutput(t *testing.T) {
	o := scratched(t, func(*Config) {})
	over := shell(1, "fallocate -n -l 40M /proc/self/fd/1 || exit 99; echo here; while :; do sleep 3600; done")
	if r := o.run(over); r.ExitCode == 99 {
		return // this file system, or this machine's programs, cannot
	} else if !strings.Contains(r.Detail, "over its scratch") {
		t.Errorf("got %+v, want it over its scratch", r)
	}
	quick := shell(2, "fallocate -n -l 40M /proc/self/fd/1; echo here")
	o.run(quick)
	for _, task := range []executor.Task{over, quick} {
		f, err := os.Open(logPath(o.cfg.Dir, task.ID.String(), 0))
		if err != nil {
			t.Fatal(err)
		}
		if n := diskuse.Excess(f); n > 0 {
			t.Errorf("%d bytes are kept beyond the end of output", n)
		}
		if err = f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyFilesAreHeld: files count by number, too, and so does the depth of folders.
func TestManyFilesAreHeld(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll(filepath.Join("work", strings.Repeat("d/", diskuse.MaxDepth+2)), 0o700); err != nil {
		t.Fatal(err)
	}
	deep := &scratch{most: diskuse.Use{Bytes: 1 << 40, Files: 1 << 20}}
	deep.measure()
	if why := deep.said.Load(); why == nil || !strings.Contains(*why, "nested") {
		t.Errorf("deep folders: %v", why)
	}
	if err := os.RemoveAll("work"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("tmp/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := os.WriteFile(fmt.Sprintf("tmp/sub/%d", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for most, over := range map[int64]bool{20: true, 40: false} {
		s := &scratch{most: diskuse.Use{Bytes: 1 << 40, Files: most}, before: diskuse.Use{Bytes: -1 << 60}}
		s.measure()
		if why := s.said.Load(); (why != nil) != over {
			t.Errorf("21 files, %d allowed: %v", most, why)
		}
	}
}

// TestCleaningHasABound: a task whose leftovers take long is told ended at once; its sandbox serves nobody more, and
// they go all the same.
func TestCleaningHasABound(t *testing.T) {
	o := scratched(t, func(c *Config) { c.cleanFor, c.Scratch = time.Nanosecond, 1<<40 })
	first, next := shell(1, "i=0; while [ $i -lt 3000 ]; do : >$i; i=$((i+1)); done"), shell(2, "ls -A")
	for _, task := range []executor.Task{first, next} {
		if r := o.run(task); r.Cause != executor.Exited || r.ExitCode != 0 {
			t.Fatalf("got %+v", r)
		}
	}
	if got := o.output(next); got != "" {
		t.Errorf("the next task finds %q", got)
	}
	if o.slotOf(first) == o.slotOf(next) {
		t.Error("a sandbox that is not empty serves on")
	}
}
