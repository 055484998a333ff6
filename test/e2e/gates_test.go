package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// awaitCounts waits until so many tasks of a job are in these states.
func awaitCounts(t *testing.T, s *testbed.Site, id string, want map[string]int) {
	t.Helper()
	await(t, fmt.Sprintf("tasks %v of %s", want, id), func() error {
		job, err := s.Job(t.Context(), id)
		if err != nil {
			return err
		}
		for state, n := range want {
			if job.Counts[state] != n {
				return fmt.Errorf("tasks are %v (%s)", job.Counts, job.Reason)
			}
		}
		return nil
	})
}

// nanos reads what date +%s%N has printed.
func nanos(t *testing.T, text string) time.Duration {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return time.Duration(n)
}

// TestRetriesThatPause: a task that fails twice with exit 3 succeeds in the end, each time after its pause, though its
// owner's broker is killed during one; after a code in not_on it has failed at once.
func TestRetriesThatPause(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	asked := fed.Sites[0]
	dir := sharedDir(t)
	times := filepath.Join(dir, "times")
	job := submit(t, asked, testbed.Spec{
		Name: "pauses", Env: map[string]string{"TIMES": times},
		Retry:   &testbed.Retry{MaxAttempts: 3, Backoff: "1s", NotOn: []string{"2", "64-78"}},
		Command: []string{"/bin/sh", "-c", `date +%s%N >> "$TIMES"; [ "$CLOUDSHARE_ATTEMPT" = 3 ] || exit 3`},
	})
	atOnce := submit(t, asked, testbed.Spec{
		Name: "at once", Command: []string{"/bin/sh", "-c", "exit 70"},
		Retry: &testbed.Retry{MaxAttempts: 3, Backoff: "1h", NotOn: []string{"2", "64-78"}},
	})
	awaitCounts(t, asked, job.ID, map[string]int{"held": 1})
	must(t, asked.Kill())
	must(t, fed.Restart(within(t), asked))
	for id, want := range map[string]string{
		job.ID: "succeeded ", atOnce.ID: "failed exit 70, after which it is not tried again (retry.not_on)",
	} {
		got, err := asked.AwaitJob(within(t), id, "succeeded", "failed", "cancelled", "lost")
		must(t, err)
		if got.State+" "+got.Reason != want {
			t.Errorf("%s: %s %s, want %s", got.Name, got.State, got.Reason, want)
		}
	}
	text, err := os.ReadFile(times)
	must(t, err)
	begun := strings.Fields(string(text))
	if len(begun) != 3 {
		t.Fatalf("begun at %q, want three times", begun)
	}
	for i, least := range []time.Duration{750 * time.Millisecond, 1500 * time.Millisecond} {
		if gap := nanos(t, begun[i+1]) - nanos(t, begun[i]); gap < least {
			t.Errorf("attempt %d began %s after the one before, want at least %s", i+2, gap, least)
		}
	}
}

// TestNoMoreAtATime: of a job with parallel 2 no three tasks run at the same time, at whatever sites, hold begins none,
// and release lets the rest begin.
func TestNoMoreAtATime(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	asked := fed.Sites[0]
	dir := sharedDir(t)
	// Each task makes a folder of its own, and says how many there are.
	job := submit(t, asked, testbed.Spec{
		Name: "two", Count: 8, Parallel: 2, Env: map[string]string{"DIR": dir},
		Command: []string{"/bin/sh", "-c", `mkdir "$DIR/on.$CLOUDSHARE_TASK"; ls -d "$DIR"/on.* | wc -l >> "$DIR/seen"; ` +
			`until [ -e "$DIR/go" ]; do sleep 0.05; done; sleep 0.1; rmdir "$DIR/on.$CLOUDSHARE_TASK"`},
	})
	awaitRunning(t, asked, job.ID, 2)
	must(t, asked.SetHold(t.Context(), job.ID, true))
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	awaitCounts(t, asked, job.ID, map[string]int{"succeeded": 2, "held": 6})
	must(t, asked.SetHold(t.Context(), job.ID, false))
	got, err := asked.AwaitJob(within(t), job.ID, "succeeded", "failed", "cancelled", "lost")
	must(t, err)
	if got.State != "succeeded" {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	must(t, err)
	if list := strings.Fields(string(seen)); len(list) != 8 || strings.Trim(strings.Join(list, ""), "12") != "" {
		t.Errorf("as many ran at a time: %v", list)
	}
}

// TestPriorityAndHoldOfWhatWaits: jobs that wait for the one core of a site begin in the order of the priorities that
// they were given while they waited, though their owner's broker is killed meanwhile; one that was submitted without
// any rule and is held begins when it is let go.
func TestPriorityAndHoldOfWhatWaits(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	asked := fed.Sites[0]
	dir := sharedDir(t)
	there := &testbed.Where{Only: []string{fed.Sites[1].Name}}
	first := submit(t, asked, testbed.Spec{
		Name: "first", Sites: there, Command: []string{"/bin/sh", "-c", `until [ -e "$DIR/go" ]; do sleep 0.05; done`},
		Env: map[string]string{"DIR": dir},
	})
	awaitRunning(t, asked, first.ID, 1)
	var ids []string
	for i := range 6 {
		ids = append(ids, submit(t, asked, testbed.Spec{
			Name: "next", Sites: there, Env: map[string]string{"DIR": dir, "N": strconv.Itoa(i)},
			Command: []string{"/bin/sh", "-c", `echo $N >> "$DIR/order"`},
		}).ID)
	}
	// Once all brokers know how.
	await(t, "a hold", func() error { return asked.SetHold(t.Context(), ids[1], true) })
	must(t, asked.SetPriority(t.Context(), 5, ids[3], ids[5]))
	must(t, asked.SetPriority(t.Context(), -5, ids[0]))
	awaitCounts(t, asked, ids[1], map[string]int{"held": 1})
	must(t, asked.Kill())
	must(t, fed.Restart(within(t), asked))
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	ends := func(i int) {
		got, err := asked.AwaitJob(within(t), ids[i], "succeeded", "failed", "cancelled", "lost")
		must(t, err)
		if got.State != "succeeded" {
			t.Errorf("job %d is %s: %s", i, got.State, got.Reason)
		}
	}
	for _, i := range []int{0, 2, 3, 4, 5} {
		ends(i)
	}
	awaitCounts(t, asked, ids[1], map[string]int{"held": 1})
	must(t, asked.SetHold(t.Context(), ids[1], false))
	ends(1)
	order, err := os.ReadFile(filepath.Join(dir, "order"))
	must(t, err)
	if got := strings.Fields(string(order)); strings.Join(got, " ") != "3 5 2 4 0 1" {
		t.Errorf("they began in the order %v", got)
	}
}

// TestStepsTaskByTask: each task of three steps begins when the one at its place of the step before has succeeded; the
// one whose counterpart fails is cancelled, and so is the one behind it.
func TestStepsTaskByTask(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	asked := fed.Sites[0]
	dir := sharedDir(t)
	step := func(name string, after ...testbed.After) testbed.Accepted {
		return submit(t, asked, testbed.Spec{
			Name: name, Count: 4, After: after, Env: map[string]string{"DIR": dir, "NAME": name},
			// Others' tasks have another user than own ones.
			Command: []string{"/bin/sh", "-c", `umask 0
				echo $NAME >> "$DIR/order.$CLOUDSHARE_TASK"; [ $NAME$CLOUDSHARE_TASK != one2 ]`},
		})
	}
	one := step("one")
	two := step("two", testbed.After{Job: one.ID, When: "each"})
	three := step("three", testbed.After{Job: two.ID, When: "each"})
	for id, want := range map[string]string{one.ID: "failed", two.ID: "cancelled", three.ID: "cancelled"} {
		got, err := asked.AwaitJob(within(t), id, "succeeded", "failed", "cancelled", "lost")
		must(t, err)
		if got.State != want || got.Counts["succeeded"] != 3 {
			t.Errorf("%s is %s: %v, %s", got.Name, got.State, got.Counts, got.Reason)
		}
		if want == "cancelled" && !strings.HasPrefix(got.Reason, "waited for the task at its place of job ") {
			t.Errorf("%s: %s", got.Name, got.Reason)
		}
	}
	for task, want := range []string{"one\ntwo\nthree\n", "one\ntwo\nthree\n", "one\n", "one\ntwo\nthree\n"} {
		order, err := os.ReadFile(filepath.Join(dir, "order."+string(rune('0'+task))))
		if err != nil || string(order) != want {
			t.Errorf("of task %d were begun %q, %v", task, order, err)
		}
	}
}
