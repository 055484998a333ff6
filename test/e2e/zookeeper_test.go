//go:build zookeeper

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// onZooKeeper are the keys of a configuration that name a tree of an ensemble of
// three, which runs until the test ends.
func onZooKeeper(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	servers, err := ensemble.New(ensemble.Config{
		Dir: dir, Servers: 3, Tick: 200 * time.Millisecond, HeapMiB: 128, Flags: ensemble.Brief,
	})
	must(t, err)
	t.Cleanup(servers.Stop)
	must(t, servers.Start(within(t)))
	auth := filepath.Join(dir, "digest")
	must(t, os.WriteFile(auth, []byte("federation:secret\n"), 0o600))
	return fmt.Sprintf("coordination: zookeeper\nzk: %s/cloudshare\nzk_auth: %s\nzk_session: 2s\n", servers.Addrs(), auth)
}

// reconfigure replaces the keys of a site's backend; "" is Raft.
func reconfigure(t *testing.T, s *testbed.Site, keys string) {
	t.Helper()
	text, err := os.ReadFile(config(s))
	must(t, err)
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "coordination:") && !strings.HasPrefix(line, "zk") {
			kept.WriteString(line)
		}
	}
	must(t, os.WriteFile(config(s), []byte(kept.String()+keys), 0o600))
}

// importKilled runs an import, killed later and later, until one ends by itself:
// whatever the others left is gone on with, or seen to be done.
func importKilled(t *testing.T, args ...string) {
	t.Helper()
	for after := 10 * time.Millisecond; ; after += 15 * time.Millisecond {
		cmd := exec.CommandContext(within(t), cloudshare, append([]string{"state", "import"}, args...)...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		must(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-time.After(after):
			_ = cmd.Process.Kill()
			if err := <-ended; err != nil {
				continue
			}
		case err := <-ended:
			if err != nil && !strings.Contains(out.String(), "imported") {
				t.Fatalf("import: %v\n%s", err, out.String())
			}
		}
		t.Logf("the import took %v", after)
		return
	}
}

// killAll ends all brokers like a crash.
func killAll(t *testing.T, fed *testbed.Federation) {
	t.Helper()
	for _, s := range fed.Sites {
		must(t, s.Kill())
	}
}

// ledgerOf is a site's view of the accounts.
func ledgerOf(t *testing.T, s *testbed.Site) testbed.Ledger {
	t.Helper()
	l, err := s.Ledger(within(t))
	must(t, err)
	must(t, l.Check())
	return l
}

// TestMoveToZooKeeperAndBack takes a federation with jobs that have ended, run and
// wait from Raft to a ZooKeeper ensemble and back. The import is killed again and
// again. Nothing is lost, no task runs twice at a time, the ledger is the same to
// the last integer, tokens are above all old ones, and no broker goes back.
func TestMoveToZooKeeperAndBack(t *testing.T) {
	t.Parallel()
	keys := onZooKeeper(t)
	fed := start(t, 3, 2)
	first, second, third := fed.Sites[0], fed.Sites[1], fed.Sites[2]
	await(t, "three voters", func() error { return threeVote(t, first) })
	awaitEnd(t, first, submit(t, first, testbed.Spec{Command: []string{"true"}, Count: 9}).ID)
	bag := newGated(t)
	spread := submit(t, first, bag.spec(8))
	before := awaitRunning(t, first, spread.ID, 6)
	nowhere := submit(t, second, testbed.Spec{Command: []string{"true"}, Sites: &testbed.Where{Only: []string{"nowhere"}}})
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	old := ledgerOf(t, first)

	killAll(t, fed)
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	wantCommand(t, 0, nil, "state", "export", a, "--config", config(first))
	wantCommand(t, 0, nil, "state", "export", b, "--config", config(second))
	for _, s := range fed.Sites {
		reconfigure(t, s, keys)
	}
	wantCommand(t, 1, []string{"no federation there", "/cloudshare", "import the state first"}, "broker", "--config", config(second))
	importKilled(t, "--config", config(first), a, b)
	wantCommand(t, 5, []string{"imported"}, "state", "import", "--config", config(second), imported(a), imported(b))

	must(t, fed.Restart(within(t), fed.Sites...))
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	if now := ledgerOf(t, third); len(old.Matrix) == 0 || !reflect.DeepEqual(now.Matrix, old.Matrix) {
		t.Errorf("the ledger was %+v and is %+v", old.Matrix, now.Matrix)
	}
	bag.open(t)
	awaitEnd(t, third, spread.ID)
	bag.noOverlap(t)
	for i, is := range tasksOf(t, first, spread.ID) {
		goesOn := is.Attempt == 1 && is.Token == before[i].Token
		if again := is.Attempt > 1 && epochOf(t, is.Token.String()) == 1; !again && !goesOn && before[i].Attempt > 0 {
			t.Errorf("task %d was %+v and ended as %+v", i, before[i], is)
		}
	}
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	old = ledgerOf(t, first)

	wantCommand(t, 5, []string{"brokers still run", "connected"}, "state", "export", c, "--config", config(third))
	killAll(t, fed)
	await(t, "the end of the brokers' sessions", func() error {
		if code, out := command(t, "state", "export", c, "--config", config(third)); code != 0 {
			return errors.New(out)
		}
		return nil
	})
	wantCommand(t, 1, []string{"the state was exported", "cloudshare state reopen"}, "broker", "--config", config(first))
	wantCommand(t, 0, []string{"sealed", "by export"}, "zk", "inspect", "--config", config(first))
	reconfigure(t, second, "")
	wantCommand(t, 2, []string{"on zookeeper, not on raft"}, "broker", "--config", config(second))
	importKilled(t, "--config", config(second), c)
	must(t, fed.Restart(within(t), second))
	peer, err := second.PeerAddress()
	must(t, err)
	for _, s := range []*testbed.Site{first, third} {
		wantCommand(t, 0, []string{"joins through"}, "recover", "--config", config(s), "--follow", peer, "--yes")
		wantCommand(t, 1, []string{"epoch 1", "has been in epoch 2"}, "broker", "--config", config(s))
		reconfigure(t, s, "")
	}
	must(t, fed.Restart(within(t), first, third))
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	now := ledgerOf(t, third)
	if !reflect.DeepEqual(now.Matrix, old.Matrix) || !reflect.DeepEqual(now.Sites, old.Sites) || now.Unit != old.Unit {
		t.Errorf("the ledger was %+v and is %+v", old, now)
	}
	if job, err := third.Job(within(t), nowhere.ID); err != nil || job.State != "queued" {
		t.Errorf("the job that waits is %+v, %v", job, err)
	}
	last := submit(t, third, testbed.Spec{Command: []string{"true"}, Count: 3})
	awaitEnd(t, third, last.ID)
	for _, task := range tasksOf(t, third, last.ID) {
		if epochOf(t, task.Token.String()) != 2 {
			t.Errorf("a new task has token %s", task.Token)
		}
	}
}

// imported is the name of a file after its import.
func imported(path string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return path + ".imported"
}

// epochOf is the high part of a token.
func epochOf(t *testing.T, token string) uint64 {
	t.Helper()
	var n uint64
	_, err := fmt.Sscan(token, &n)
	must(t, err)
	return n >> 40
}
