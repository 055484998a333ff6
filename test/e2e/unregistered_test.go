package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// judgedWithin is how long a killed site may stay alive in the state: an election,
// the patience with a leader that is not registered, its handover, then the lease
// and the margin (7 s) of the new leader's first wait, and as much again as a busy
// machine may need.
const judgedWithin = 25 * time.Second

// TestUnregisteredLeaderLetsAnotherJudge: a leader is paused until it is lost. It
// cannot end a foreign task, whose supervisor hangs, so it is not registered again.
// Then it is the only one that can be elected, and the leader before it is killed:
// the broker that is left judges the killed site.
func TestUnregisteredLeaderLetsAnotherJudge(t *testing.T) {
	fed := start(t, 3, 1)
	stuck, rest := leaderAndOthers(t, fed)
	other := rest[0]
	a := submit(t, other, testbed.Spec{
		Command: []string{"/bin/sleep", "600"}, Sites: &testbed.Where{Only: []string{stuck.Name}},
	})
	awaitRunning(t, other, a.ID, 1)

	must(t, stuck.Signal(syscall.SIGSTOP))
	supervisors := signalSupervisors(t, stuck, syscall.SIGSTOP)
	defer signal(supervisors, syscall.SIGCONT)
	awaitState(t, other, stuck, "lost", limit)
	must(t, stuck.Signal(syscall.SIGCONT))
	await(t, "it follows and is not ready", func() error {
		st, err := stuck.Status(within(t))
		if err == nil && (st.Leader == "" || st.Leader == stuck.Name) {
			err = fmt.Errorf("it follows %q", st.Leader)
		}
		if ready := stuck.Ready(within(t)); err == nil && (ready == nil || !strings.Contains(ready.Error(), "lost")) {
			err = fmt.Errorf("it is lost, and asked whether it is ready it says %v", ready) //nolint:errorlint // which may be nil
		}
		return err
	})

	// What the stuck broker has, and the one that will be left lacks, keeps that one
	// from being elected (on Raft): the stuck one has to lead first.
	leader, left := leaderOf(t, other, rest)
	must(t, left.Signal(syscall.SIGSTOP))
	submit(t, leader, testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{"nowhere"}}})
	must(t, leader.Kill())
	must(t, left.Signal(syscall.SIGCONT))
	awaitState(t, left, leader, "lost", judgedWithin)
	if st, err := left.Status(within(t)); err != nil || st.Leader != left.Name {
		t.Errorf("%q leads, not the only broker that is registered: %v", st.Leader, err)
	}

	signal(supervisors, syscall.SIGCONT)
	await(t, "the stuck site registers and is ready", func() error { return stuck.Ready(within(t)) })
	must(t, fed.Restart(within(t), leader))
	agree(t, fed)
}

// leaderAndOthers waits for three voters and returns who leads.
func leaderAndOthers(t *testing.T, fed *testbed.Federation) (leader *testbed.Site, others []*testbed.Site) {
	t.Helper()
	await(t, "three voters", func() error {
		st, err := fed.Sites[0].Status(within(t))
		if err == nil && len(st.Voters) < 3 {
			err = fmt.Errorf("voters are %v", st.Voters)
		}
		return err
	})
	leader, _ = leaderOf(t, fed.Sites[0], fed.Sites)
	for _, s := range fed.Sites {
		if s != leader {
			others = append(others, s)
		}
	}
	return leader, others
}

// leaderOf returns which of some sites leads, as one of them knows, and another one.
func leaderOf(t *testing.T, asked *testbed.Site, among []*testbed.Site) (leader, other *testbed.Site) {
	t.Helper()
	await(t, "a leader", func() error {
		st, err := asked.Status(within(t))
		for _, s := range among {
			if s.Name == st.Leader {
				leader = s
			} else {
				other = s
			}
		}
		if err == nil && leader == nil {
			err = fmt.Errorf("%q leads", st.Leader)
		}
		return err
	})
	return leader, other
}

// awaitState waits until a broker sees a site in a state.
func awaitState(t *testing.T, asked, site *testbed.Site, state string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	must(t, testbed.Await(ctx, site.Name+" is "+state, func() error {
		i, err := asked.Info(ctx, site.Name)
		if err == nil && i.State != state {
			err = fmt.Errorf("%s says that it is %s", asked.Name, i.State)
		}
		return err
	}))
}

// signalSupervisors signals those of a site's tasks, and returns them.
func signalSupervisors(t *testing.T, s *testbed.Site, sig syscall.Signal) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, proc := range all {
		args, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		fields := bytes.Split(args, []byte{0})
		if err != nil || len(fields) < 2 || string(fields[1]) != "supervise" {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if pid, e := strconv.Atoi(filepath.Base(proc)); err == nil && e == nil && strings.HasPrefix(cwd, s.Dir+"/") {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Fatalf("no supervisor runs at %s", s.Name)
	}
	signal(pids, sig)
	return pids
}

func signal(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
