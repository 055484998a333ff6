package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestMoveThroughAFile has a federation, with tasks that run and tasks that wait,
// go on from exported states in an empty log: no task runs twice at a time, all
// come to an end, the ledger is the same to the last integer, and tokens are
// above all old ones. What is in the way of a move is refused.
func TestMoveThroughAFile(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	first, second, third := fed.Sites[0], fed.Sites[1], fed.Sites[2]
	await(t, "three voters", func() error { return threeVote(t, first) })
	awaitEnd(t, first, submit(t, first, testbed.Spec{Command: []string{"true"}, Count: 9}).ID)
	bag, parked := newGated(t), newGated(t)
	spread := submit(t, first, bag.spec(8))
	before := awaitRunning(t, first, spread.ID, 6)
	waiting := submit(t, second, parked.spec(2))
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	old, err := first.Ledger(within(t))
	must(t, err)

	dir := t.TempDir()
	file := func(s *testbed.Site) string { return filepath.Join(dir, s.Name+".state") }
	wantCommand(t, 5, []string{"stop it"}, "state", "export", file(first), "--config", config(first))
	must(t, first.Kill())
	wantCommand(t, 5, []string{"brokers still run", "stop all"}, "state", "export", file(first), "--config", config(first))
	must(t, second.Kill())
	must(t, third.Kill())
	wantCommand(t, 0, []string{"Export at 2 of the 3 voters"}, "state", "export", file(first), "--config", config(first))
	wantCommand(t, 5, []string{"file exists"}, "state", "export", file(first), "--config", config(first))
	wantCommand(t, 0, []string{first.Name, "last index"}, "state", "show", file(first))
	wantCommand(t, 1, []string{"the state was exported", "cloudshare state reopen"}, "broker", "--config", config(first))

	importing := func(code int, texts []string, files ...string) {
		t.Helper()
		wantCommand(t, code, texts, append([]string{"state", "import", "--config", config(first)}, files...)...)
	}
	importing(5, []string{"1 of the 3 voters", second.Name, "--incomplete"}, file(first))
	wantCommand(t, 0, nil, "state", "export", file(second), "--config", config(second))
	importing(5, []string{"move the directory away"}, file(first), file(second))
	damage(t, file(first), filepath.Join(dir, "bad"))
	importing(5, []string{"damaged", "copy it again"}, filepath.Join(dir, "bad"), file(second))

	raft := filepath.Join(first.Dir, "data", "raft")
	must(t, os.Rename(raft, raft+".old"))
	stop := alone(t, third)
	importing(5, []string{third.Name + " answers", "stop all"}, file(first), file(second))
	stop()
	importing(0, []string{"epoch", first.Name + " is the only voter", "--follow"}, file(first), file(second))
	importing(5, []string{"imported already"}, file(first), file(second))
	importing(5, []string{"imported here already"}, file(first)+".imported", file(second)+".imported")

	must(t, fed.Restart(within(t), first))
	peer, err := first.PeerAddress()
	must(t, err)
	wantCommand(t, 5, []string{"epoch 1"}, "state", "reopen", "--config", config(second))
	for _, s := range []*testbed.Site{second, third} {
		wantCommand(t, 0, []string{"joins through"}, "recover", "--config", config(s), "--follow", peer, "--yes")
	}
	must(t, fed.Restart(within(t), second, third))
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
	now, err := second.Ledger(within(t))
	must(t, err)
	must(t, now.Check())
	if len(old.Matrix) == 0 || !reflect.DeepEqual(now.Matrix, old.Matrix) {
		t.Errorf("the ledger was %+v and is %+v", old.Matrix, now.Matrix)
	}

	bag.open(t)
	parked.open(t)
	awaitEnd(t, first, spread.ID)
	awaitEnd(t, second, waiting.ID)
	bag.noOverlap(t)
	for i, is := range tasksOf(t, first, spread.ID) {
		was := before[i]
		goesOn := was.Site == first.Name
		if goesOn && is.Token != was.Token || !goesOn && len(is.Token.String()) <= 12 {
			t.Errorf("task %d was %+v and ended as %+v", i, was, is)
		}
	}
}

// alone runs a site's broker, which has no quorum and so is not ready, until stop.
func alone(t *testing.T, s *testbed.Site) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cloudshare, "broker", "--config", config(s))
	must(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	await(t, s.Name+" to answer", func() error {
		_, err := s.Status(t.Context())
		return err
	})
	return stop
}

// threeVote is nil once there are three voters.
func threeVote(t *testing.T, s *testbed.Site) error {
	st, err := s.Status(t.Context())
	if err == nil && len(st.Voters) != 3 {
		err = fmt.Errorf("voters are %v", st.Voters)
	}
	return err
}

// damage copies a file with one byte changed.
func damage(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(to, b, 0o600))
}
