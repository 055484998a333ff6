package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestJobLifecycle walks a job's way through a federation of three sites with
// one core each, in the eight steps of the architecture.
func TestJobLifecycle(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1, "CLOUDSHARE_LEASE=30s") // outlasts step 8's restart on a busy machine
	alice, bob, carol := fed.Sites[0], fed.Sites[1], fed.Sites[2]

	// 1. submit: the broker answers once the job is durable, with an id that
	// names the owner.
	homeBag := newGated(t)
	first := submit(t, alice, homeBag.spec(1))
	if !strings.HasPrefix(first.ID, alice.Name+".") {
		t.Errorf("job id %q does not name its owner %s", first.ID, alice.Name)
	}

	// 2. home or federation: with an own core free and nobody waiting, the job
	// starts at once where it was submitted; with none free it is published.
	if at := awaitRunning(t, alice, first.ID, 1)[0].Site; at != alice.Name {
		t.Errorf("with its own core free, %s had its job run at %s", alice.Name, at)
	}
	awayBag := newGated(t)
	second := submit(t, alice, awayBag.spec(3))
	if second.Durability != "federation" {
		t.Errorf("a published job was acknowledged with durability %q", second.Durability)
	}

	// 3. order: all brokers apply the same commands in the same order.
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))

	// 4. offer: every site exposes its machine.
	for _, s := range fed.Sites {
		if info, err := bob.Info(within(t), s.Name); err != nil || info.State != "alive" {
			t.Errorf("%s sees %s as %q: %v", bob.Name, s.Name, info.State, err)
		}
	}

	// 5. decide: two tasks are matched with the two free cores, under a token
	// each; the third waits.
	tasks := awaitRunning(t, carol, second.ID, 2)
	if at := sitesOf(tasks); at[bob.Name] != 1 || at[carol.Name] != 1 {
		t.Errorf("tasks run at %v, want one at each free core", at)
	}
	for _, task := range tasks[:2] {
		if task.Attempt != 1 || task.Token == "" || task.Token == "0" {
			t.Errorf("task %d runs as attempt %d with token %q", task.Index, task.Attempt, task.Token)
		}
	}
	if tasks[2].State != "queued" {
		t.Errorf("the third task is %s", tasks[2].State)
	}

	// 6. run: the task knows who it is, and its owner has its output, wherever it ran.
	hello := submit(t, bob, testbed.Spec{Command: []string{
		"/bin/sh", "-c", `echo "I am $CLOUDSHARE_JOB/$CLOUDSHARE_TASK of $CLOUDSHARE_OWNER at $CLOUDSHARE_SITE"`,
	}})

	// 7. complete: freed cores take what waits; the ledger moves, and stays even.
	awayBag.open(t)
	awaitEnd(t, alice, second.ID)
	awayBag.onceEach(t, 3)
	awaitEnd(t, bob, hello.ID)
	ran := tasksOf(t, carol, hello.ID)[0]
	out, err := bob.Logs(within(t), hello.ID, 0)
	want := fmt.Sprintf("I am %s/0 of %s at %s\n", hello.ID, bob.Name, ran.Site)
	if err != nil || out != want {
		t.Errorf("%s shows the output %q, %v; want %q", bob.Name, out, err, want)
	}
	if out, err = carol.Logs(within(t), hello.ID, 0); err == nil || !strings.Contains(err.Error(), "not-owner") {
		t.Errorf("%s shows another site's output %q, %v", carol.Name, out, err)
	}
	agree(t, fed)
	ledger, err := carol.Ledger(within(t))
	must(t, err)
	for _, acc := range ledger.Sites {
		if acc.Site == alice.Name && !strings.HasPrefix(acc.Priority, "-") {
			t.Errorf("%s had two sites work for it, but stands at %s", alice.Name, acc.Priority)
		}
	}

	// 8. lost: a broker that is killed and returns adopts and settles its tasks.
	// (What happens while it stays away is test/chaos's.)
	lostBag := newGated(t)
	only := lostBag.spec(1)
	only.Sites = &testbed.Where{Only: []string{carol.Name}}
	foreign := submit(t, bob, only)
	before := awaitRunning(t, bob, foreign.ID, 1)[0]
	own := submit(t, carol, only) // no room: it waits
	must(t, carol.Kill())
	must(t, fed.Restart(within(t), carol))
	lostBag.open(t)
	awaitEnd(t, alice, own.ID)
	awaitEnd(t, alice, foreign.ID)
	if after := tasksOf(t, alice, foreign.ID)[0]; after.Attempt != before.Attempt || after.Token != before.Token {
		t.Errorf("the task was %+v and ended as %+v", before, after)
	}
	homeBag.open(t)
	awaitEnd(t, carol, first.ID)
	lostBag.noOverlap(t)
	agree(t, fed)
}
