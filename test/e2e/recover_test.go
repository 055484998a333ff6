package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// command runs cloudshare until it ends by itself.
func command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(within(t), cloudshare, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), out.String()
	case err != nil:
		t.Fatalf("cloudshare %v: %v\n%s", args, err, out.String())
	}
	return 0, out.String()
}

// wantCommand runs cloudshare and checks its exit code and that it says texts.
func wantCommand(t *testing.T, code int, texts []string, args ...string) {
	t.Helper()
	got, out := command(t, args...)
	if got != code {
		t.Fatalf("cloudshare %v: exit %d, want %d\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("cloudshare %v does not say %q:\n%s", args, text, out)
		}
	}
}

func config(s *testbed.Site) string { return filepath.Join(s.Dir, "config.yaml") }

// join runs the broker of a new site, which members invite, until the test ends; args count more than
// what stands here.
func join(t *testing.T, name string, members []*testbed.Site, args ...string) {
	t.Helper()
	way, err := members[0].InviteFile(within(t), t.TempDir(), name, members[1:]...)
	must(t, err)
	args = append([]string{
		"broker", "--site", name, "--data-dir", t.TempDir(), way[0], way[1],
		"--http", "127.0.0.1:0", "--peer", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--cores", "1", "--stop-tasks",
	}, args...)
	cmd := exec.CommandContext(t.Context(), cloudshare, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s\n%s", name, log.String())
		}
	})
}

// lostVoters is a federation of four with two of its three voters.
type lostVoters struct {
	fed             *testbed.Federation
	survivor, other *testbed.Site // a voter, and the site that is none
	dead            []*testbed.Site
}

func startWithVoters(t *testing.T) lostVoters {
	t.Helper()
	v := lostVoters{fed: start(t, 4, 2)}
	var voters []string
	await(t, "three voters", func() error {
		st, err := v.fed.Sites[0].Status(t.Context())
		if voters = st.Voters; err == nil && len(voters) != 3 {
			err = fmt.Errorf("voters are %v", voters)
		}
		return err
	})
	for _, s := range v.fed.Sites {
		switch {
		case !slices.Contains(voters, s.Name):
			v.other = s
		case v.survivor == nil:
			v.survivor = s
		default:
			v.dead = append(v.dead, s)
		}
	}
	return v
}

// TestRecoverFromALostQuorum loses two of three voters with their disks while
// tasks run everywhere. The third goes on alone in a new epoch: no task runs
// twice at a time, all that it and the other survivor own comes to an end, what
// the other one accepted alone is published when it follows, and a new site joins.
func TestRecoverFromALostQuorum(t *testing.T) {
	t.Parallel()
	v := startWithVoters(t)
	bag, parked, alone := newGated(t), newGated(t), newGated(t)
	spread := submit(t, v.survivor, bag.spec(8))
	before := awaitRunning(t, v.survivor, spread.ID, 8)
	waiting := submit(t, v.other, parked.spec(2))
	orphan := submit(t, v.dead[0], parked.spec(1))
	must(t, testbed.AwaitEqualState(within(t), v.fed.Sites...))

	for _, s := range v.dead {
		must(t, s.Kill())
		must(t, os.RemoveAll(filepath.Join(s.Dir, "data")))
	}
	wantCommand(t, 5, []string{"stop it"}, "recover", "--config", config(v.survivor))
	spec := alone.spec(1)
	spec.Sites = &testbed.Where{Only: []string{v.survivor.Name}}
	promised := submit(t, v.other, spec)
	if promised.Durability != "site" {
		t.Errorf("accepted without a quorum: %+v", promised)
	}
	must(t, v.other.Kill()) // a broker of dev that is stopped ends its tasks
	must(t, v.survivor.Kill())

	wantCommand(t, 0, []string{"Nothing was changed", v.dead[0].Name, "this one"}, "recover", "--config", config(v.survivor))
	wantCommand(t, 0, []string{"only voter", "--follow"}, "recover", "--config", config(v.survivor), "--yes")
	wantCommand(t, 5, []string{"nothing to recover"}, "recover", "--config", config(v.survivor), "--yes")
	must(t, v.fed.Restart(within(t), v.survivor))
	st, err := v.survivor.Status(within(t))
	must(t, err)
	if st.Leader != v.survivor.Name || st.Index>>40 != 1 || !slices.Equal(st.Voters, []string{v.survivor.Name}) {
		t.Errorf("after the recovery: %+v", st)
	}
	for i, is := range tasksOf(t, v.survivor, spread.ID) { // its own go on, the others have ended or will
		if was := before[i]; was.Site == v.survivor.Name && (is.State != "running" || is.Token != was.Token || is.Attempt != 1) {
			t.Errorf("task %d of the survivor's own did not go on: was %+v, is %+v", i, was, is)
		}
	}
	peer, err := v.survivor.PeerAddress()
	must(t, err)

	// With its old data the other one is told what to do, and stops.
	wantCommand(t, 1, []string{"epoch 1", "cloudshare recover --follow " + peer}, "broker", "--config", config(v.other))
	wantCommand(t, 5, []string{"--follow " + peer}, "recover", "--config", config(v.other), "--yes")
	wantCommand(t, 0, []string{"joins through"}, "recover", "--config", config(v.other), "--follow", peer, "--yes")
	must(t, v.fed.Restart(within(t), v.other))
	join(t, "site-new", []*testbed.Site{v.survivor, v.other})
	await(t, "the new site", func() error {
		info, err := v.survivor.Info(t.Context(), "site-new")
		if err == nil && info.State != "alive" {
			err = fmt.Errorf("it is %s", info.State)
		}
		return err
	})

	for _, g := range []*gated{bag, parked, alone} {
		g.open(t)
	}
	awaitEnd(t, v.survivor, spread.ID)
	for i, is := range tasksOf(t, v.survivor, spread.ID) {
		if again := before[i].Site != v.survivor.Name; again != (is.Attempt > 1 && len(is.Token.String()) > 12) {
			t.Errorf("task %d ran at %s and ended as %+v", i, before[i].Site, is)
		}
	}
	awaitEnd(t, v.other, waiting.ID)
	awaitEnd(t, v.survivor, promised.ID)
	awaitEnd(t, v.other, submit(t, v.other, testbed.Spec{
		Command: []string{"true"},
		Sites:   &testbed.Where{Only: []string{"site-new"}},
	}).ID)
	bag.noOverlap(t)
	if job, err := v.survivor.Job(within(t), orphan.ID); err != nil || job.State != "withdrawn" {
		t.Errorf("the job of a lost site is %q, %v", job.State, err)
	}
	must(t, testbed.AwaitEqualState(within(t), v.survivor, v.other))
	for _, s := range []*testbed.Site{v.survivor, v.other} {
		l, err := s.Ledger(within(t))
		must(t, err)
		must(t, l.Check())
	}
}
