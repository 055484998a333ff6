// Package e2e tests whole federations of real broker processes, from outside:
// all eight steps of a job's way. Start reading at TestJobLifecycle.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// cloudshare is the binary, built once for all tests.
var cloudshare string

// coordination is the backend under test.
var coordination = flag.String("coordination", "", "where the log is: raft or zookeeper; empty = the product's choice")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testbed.BuildAndRun(func(binary string) int {
		cloudshare, solo.Binary = binary, binary
		if err := os.Setenv("CLOUDSHARE_SANDBOX_SHARE", testbed.SharedBeside(binary)); err != nil { // of every broker
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer stopShared()
		return m.Run()
	}))
}

// limit of one wait: far above what a busy machine needs, below the tests' own.
const limit = 45 * time.Second

// start runs a federation until the test ends. Its states must be equal then, as
// the brokers themselves must have seen all the time.
func start(t *testing.T, sites, cores int, env ...string) *testbed.Federation {
	t.Helper()
	fed := startBinary(t, cloudshare, sites, cores, env...)
	t.Cleanup(func() {
		if err := testbed.CompareStates(context.Background(), fed.Sites...); err != nil {
			t.Error("states differ:", err)
		}
	})
	return fed
}

// startBinary runs a federation until the test ends, with further variables of its brokers; its logs are shown on
// failure.
func startBinary(t *testing.T, binary string, sites, cores int, env ...string) *testbed.Federation {
	t.Helper()
	fed, err := testbed.Start(t.Context(), testbed.Options{
		Binary: binary, Dir: t.TempDir(), Sites: sites, Cores: cores, Coordination: *coordination, Env: env,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fed.Stop(); err != nil {
			t.Error("stop federation:", err)
		}
		if t.Failed() {
			for _, s := range fed.Sites {
				t.Logf("%s\n%s", s.Name, s.LogTail(40))
			}
		}
	})
	return fed
}

// within bounds the waits of one step.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// await waits for a condition or ends the test.
func await(t *testing.T, what string, cond func() error) {
	t.Helper()
	must(t, testbed.Await(within(t), what, cond))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// submit has a site accept a job or ends the test.
func submit(t *testing.T, s *testbed.Site, spec testbed.Spec) testbed.Accepted {
	t.Helper()
	a, err := s.Submit(within(t), spec)
	must(t, err)
	if a.ID == "" {
		t.Fatalf("%s accepted a job without an id: %+v", s.Name, a)
	}
	return a
}

// tasksOf returns all tasks of a job or ends the test.
func tasksOf(t *testing.T, s *testbed.Site, id string) []testbed.Task {
	t.Helper()
	tasks, err := s.Tasks(within(t), id)
	must(t, err)
	return tasks
}

// awaitEnd waits for a job's success.
func awaitEnd(t *testing.T, s *testbed.Site, id string) {
	t.Helper()
	job, err := s.AwaitJob(within(t), id, "succeeded", "failed", "lost", "cancelled")
	must(t, err)
	if job.State != "succeeded" {
		t.Fatalf("job %s ended %s (%s), tasks %v", id, job.State, job.Reason, job.Counts)
	}
}

// awaitRunning waits until n tasks of the job run, and returns all its tasks.
func awaitRunning(t *testing.T, s *testbed.Site, id string, n int) []testbed.Task {
	t.Helper()
	await(t, fmt.Sprintf("%d running tasks of %s", n, id), func() error {
		job, err := s.Job(t.Context(), id)
		if err != nil {
			return err
		}
		if job.Counts["running"] != n {
			return fmt.Errorf("tasks are %v (%s)", job.Counts, job.Reason)
		}
		return nil
	})
	return tasksOf(t, s, id)
}

// agree waits until all brokers show the same state, and checks that their
// ledgers sum to zero.
func agree(t *testing.T, fed *testbed.Federation) {
	t.Helper()
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	for _, s := range fed.Sites {
		l, err := s.Ledger(within(t))
		must(t, err)
		must(t, l.Check())
		if len(l.Sites) != len(fed.Sites) {
			t.Errorf("the ledger of %s has the accounts %+v", s.Name, l.Sites)
		}
	}
}
