package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// gated is a bag of tasks that leave marks in one file, all attempts at all
// sites, and that run until a gate opens. Marks are single appends with
// O_APPEND: they are whole, and stand in the order in which they happened.
type gated struct {
	marks, gate string
}

// mark is one line: what happened to which attempt where.
type mark struct {
	what, job, task, attempt, token, site string
}

// attemptID names an attempt in failures.
func (m mark) attemptID() string {
	return fmt.Sprintf("%s/%s attempt %s token %s at %s", m.job, m.task, m.attempt, m.token, m.site)
}

const markScript = `
mark() { echo "$1 $CLOUDSHARE_JOB $CLOUDSHARE_TASK $CLOUDSHARE_ATTEMPT $CLOUDSHARE_TOKEN $CLOUDSHARE_SITE" >> "$MARKS"; }
mark start
until [ -e "$GATE" ]; do mark beat; sleep 0.05; done
mark end`

func newGated(t *testing.T) *gated {
	t.Helper()
	dir := sharedDir(t)
	g := &gated{marks: filepath.Join(dir, "marks"), gate: filepath.Join(dir, "gate")}
	// Made before any task does: tasks are of different users where the broker is root.
	must(t, testbed.MakeSharedFile(g.marks))
	return g
}

// sharedDir is a test's folder that tasks see.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(testbed.SharedBeside(cloudshare), "") //nolint:usetesting // tasks see no other folder
	must(t, err)
	must(t, os.Chmod(dir, 0o777))
	return dir
}

// spec of a job of count such tasks.
func (g *gated) spec(count int) testbed.Spec {
	return testbed.Spec{
		Command: []string{"/bin/sh", "-c", markScript}, Count: count,
		Env: map[string]string{"MARKS": g.marks, "GATE": g.gate},
	}
}

// open lets all tasks end.
func (g *gated) open(t *testing.T) {
	t.Helper()
	must(t, os.WriteFile(g.gate, nil, 0o600))
}

// read returns all marks so far.
func (g *gated) read(t *testing.T) []mark {
	t.Helper()
	data, err := os.ReadFile(g.marks)
	must(t, err)
	var all []mark
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 6 {
			t.Fatalf("mark %q has not six fields", line)
		}
		all = append(all, mark{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return all
}

// onceEach checks that each of count tasks started once, as attempt 1, and ended once.
func (g *gated) onceEach(t *testing.T, count int) {
	t.Helper()
	starts, ends := map[string]int{}, map[string]int{}
	for _, m := range g.read(t) {
		switch m.what {
		case "start":
			starts[m.task]++
			if m.attempt != "1" || starts[m.task] > 1 {
				t.Errorf("started again: %s", m.attemptID())
			}
		case "end":
			ends[m.task]++
		}
	}
	for i := range count {
		task := fmt.Sprint(i)
		if starts[task] != 1 || ends[task] != 1 {
			t.Errorf("task %s started %d times and ended %d times", task, starts[task], ends[task])
		}
	}
}

// noOverlap checks that an attempt left no mark after a later one of its task did.
func (g *gated) noOverlap(t *testing.T) {
	t.Helper()
	latest := map[string]mark{} // by job and task: a bag may be of several jobs
	over := map[string]bool{}   // attempts that a later one has followed
	for _, m := range g.read(t) {
		if over[m.attemptID()] {
			t.Errorf("still ran after its successor began: %s", m.attemptID())
			return
		}
		task := m.job + "/" + m.task
		if last, ok := latest[task]; ok && last.attemptID() != m.attemptID() {
			over[last.attemptID()] = true
		}
		latest[task] = m
	}
}

// sites of the tasks' executors, with how many tasks each has.
func sitesOf(tasks []testbed.Task) map[string]int {
	n := map[string]int{}
	for _, task := range tasks {
		if task.Site != "" {
			n[task.Site]++
		}
	}
	return n
}
