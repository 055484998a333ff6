package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// A broker whose state differs from that of the two others stops by itself, keeps
// both states and refuses to start until its operator has acted. The others go on,
// and nothing that was acknowledged is lost.
func TestForkedReplicaStops(t *testing.T) {
	t.Parallel()
	binary := mutated(t)
	fed := startBinary(t, binary, 3, 2)
	await(t, "three voters", func() error { return threeVote(t, fed.Sites[0]) })
	forked, rest := fed.Sites[2], fed.Sites[:2]
	must(t, forked.Kill())
	ended := runForked(t, binary, forked, 40)
	var jobs []string
	for range 30 { // entries: from the fortieth on the state differs
		jobs = append(jobs, submit(t, rest[0], testbed.Spec{Command: []string{"true"}}).ID)
	}
	awaitDiverged(t, forked, ended)
	for _, s := range rest {
		for _, id := range append(jobs, submit(t, s, testbed.Spec{Command: []string{"true"}}).ID) {
			awaitEnd(t, s, id)
		}
	}
	must(t, testbed.AwaitEqualState(within(t), rest...))

	out, err := exec.CommandContext(within(t), binary, "broker", "--config", config(forked)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "move that folder away") {
		t.Fatalf("it starts again, or does not say what to do: %v\n%s", err, out)
	}
	diverged := filepath.Join(forked.Dir, "data", "diverged")
	must(t, os.Rename(diverged, diverged+".reported"))
	must(t, fed.Restart(within(t), forked))
	must(t, testbed.AwaitEqualState(within(t), fed.Sites...))
}

// A leader whose state differs stops, too, although all commands go through it: the two
// others elect another one, and nothing that was acknowledged is lost.
func TestForkedLeaderStops(t *testing.T) {
	t.Parallel()
	binary := mutated(t)
	fed := startBinary(t, binary, 3, 2)
	forked, rest := leaderAndOthers(t, fed)
	st, err := forked.Status(within(t))
	must(t, err)
	must(t, forked.Kill())
	ended := runForked(t, binary, forked, st.Index+forkBehind)
	await(t, forked.Name+" ready", func() error { return forked.Ready(t.Context()) })
	handLead(t, forked, rest)
	var jobs []string
	for range forkBehind { // an entry each: somewhere here its state becomes another one
		jobs = append(jobs, submit(t, rest[0], testbed.Spec{
			Command: []string{"true"},
			Sites:   &testbed.Where{Only: []string{"nowhere"}},
		}).ID)
	}
	awaitDiverged(t, forked, ended)
	for _, s := range rest {
		awaitEnd(t, s, submit(t, s, testbed.Spec{Command: []string{"true"}}).ID)
		for _, id := range jobs {
			job, err := s.Job(within(t), id)
			must(t, err)
			if job.State != "queued" {
				t.Errorf("%s shows %s as %s", s.Name, id, job.State)
			}
		}
	}
	must(t, testbed.AwaitEqualState(within(t), rest...))
}

// forkBehind are the entries until a replica forks: far more than it takes to have it
// lead, on a busy machine, too.
const forkBehind = 100

// handLead has a broker elected: of the two others the leader is paused, and the third
// one lacks an entry. Now and then that one finds the entry in its socket and leads
// itself: then it is the next to be paused. A leader that was killed and is back before
// the others miss it may lead already.
func handLead(t *testing.T, to *testbed.Site, others []*testbed.Site) {
	t.Helper()
	for leads := ""; leads != to.Name; {
		leader, _ := leaderOf(t, to, append(slices.Clone(others), to))
		if leader == to {
			return
		}
		left := others[0]
		if left == leader {
			left = others[1]
		}
		must(t, left.Signal(syscall.SIGSTOP))
		submit(t, leader, testbed.Spec{Command: []string{"true"}, Sites: &testbed.Where{Only: []string{"nowhere"}}})
		must(t, leader.Signal(syscall.SIGSTOP))
		must(t, left.Signal(syscall.SIGCONT))
		await(t, "another leader", func() error {
			st, err := to.Status(t.Context())
			if leads = st.Leader; err == nil && (leads == "" || leads == leader.Name) {
				err = fmt.Errorf("%q leads", leads)
			}
			return err
		})
		must(t, leader.Signal(syscall.SIGCONT))
	}
}

// mutated is a broker that can be made to fork, built once for all tests.
func mutated(t *testing.T) string {
	t.Helper()
	binary, err := buildMutated()
	must(t, err)
	return binary
}

var buildMutated = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(cloudshare), "mutated")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return testbed.Build(context.Background(), dir, "mutate")
})

// awaitDiverged waits until a forked broker has ended, and wants it to say why and to
// keep both states.
func awaitDiverged(t *testing.T, forked *testbed.Site, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-within(t).Done():
		t.Fatalf("%s runs still", forked.Name)
	}
	if forked.ReportedDifference() == nil || !strings.Contains(forked.LogTail(20), "a majority of the voters") {
		t.Error("it does not say why")
	}
	states, err := filepath.Glob(filepath.Join(forked.Dir, "data", "diverged", "*.snap"))
	must(t, err)
	if len(states) != 2 {
		t.Errorf("it keeps the states %v", states)
	}
	checkEvidence(t, forked)
}

// checkEvidence wants a broker to have kept what the others and itself have signed, such that anybody can check it.
func checkEvidence(t *testing.T, s *testbed.Site) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, "data", "evidence", "differs-*.json"))
	must(t, err)
	if len(files) == 0 {
		t.Errorf("%s keeps no evidence:\n%s", s.Name, s.LogTail(20))
	}
	for _, f := range files {
		out, err := exec.CommandContext(within(t), cloudshare, "audit", "check", f).CombinedOutput()
		if err != nil || !strings.Contains(string(out), s.Name) || !strings.Contains(string(out), "does not prove which is") {
			t.Errorf("%s: %v: %s", f, err, out)
		}
	}
}

// runForked starts a killed broker again, whose state becomes another one at an entry;
// the channel is closed when it has ended.
func runForked(t *testing.T, binary string, s *testbed.Site, at uint64) <-chan struct{} {
	t.Helper()
	ended, _ := runMutated(t, binary, s, fmt.Sprintf("fork-replica:%s@%d", s.Name, at))
	return ended
}

// runMutated starts a killed broker again with a fault of its own. The channel is
// closed when it has ended, which kill has it do.
func runMutated(t *testing.T, binary string, s *testbed.Site, fault string) (_ <-chan struct{}, kill func()) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.Dir, "broker.log"), os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	cmd := exec.CommandContext(t.Context(), binary, "broker", "--config", config(s))
	cmd.Env = append(os.Environ(), "CLOUDSHARE_MUTATE="+fault)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	kill = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	t.Cleanup(kill)
	return ended, kill
}
