package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestTasksThatEndTheirSupervisorsAreCharged: a task that works and then kills the supervisor that watches it, which
// it can outside of a sandbox, is computed for nothing no more. Each of its attempts is in the ledger, and the fifth
// is the last: at another site, and at home.
func TestTasksThatEndTheirSupervisorsAreCharged(t *testing.T) {
	fed := start(t, 2, 1, "CLOUDSHARE_SANDBOX_TASKS=off")
	owner, other := fed.Sites[0], fed.Sites[1]
	for _, where := range []*testbed.Site{other, owner} {
		a := submit(t, owner, testbed.Spec{
			Command: []string{"sh", "-c", "echo worked; sleep 0.2; kill -9 $PPID; sleep 60"},
			Sites:   &testbed.Where{Only: []string{where.Name}},
		})
		job, err := owner.AwaitJob(within(t), a.ID, "succeeded", "failed", "lost", "cancelled")
		must(t, err)
		if job.State != "failed" || !strings.Contains(job.Reason, "owner's fault") {
			t.Fatalf("at %s: the job is %s: %s", where.Name, job.State, job.Reason)
		}
		task := tasksOf(t, owner, a.ID)[0]
		if task.Attempt < 5 || task.Site != where.Name || !strings.Contains(task.Reason, where.Name) {
			t.Errorf("at %s: the task is %+v", where.Name, task)
		}
		if out, err := owner.Logs(within(t), a.ID, 0); err != nil || out != "worked\n" {
			t.Errorf("at %s: its output is %q, %v", where.Name, out, err)
		}
		await(t, "five charged runs", func() error { return hasCharged(t, owner, where, 5) })
	}
	agree(t, fed)
}

// hasCharged says what the ledger lacks of an owner's runs at a site.
func hasCharged(t *testing.T, owner, at *testbed.Site, runs uint64) error {
	t.Helper()
	l, err := owner.Ledger(within(t))
	if err != nil {
		return err
	}
	for _, c := range l.Matrix {
		if c.Owner == owner.Name && c.Executor == at.Name && c.Tasks >= runs && c.A != "0" {
			return nil
		}
	}
	return fmt.Errorf("the ledger has %+v", l.Matrix)
}
