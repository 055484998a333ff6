package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
)

const (
	// forkedSite is the one whose replica forks by this mutation, behind its 40th entry.
	forkedSite = "site-2"
	forkIt     = "fork-replica:" + forkedSite
	// differsWithin a broker whose state differs has stopped: replicas choose an entry
	// to compare every 5 s at least, and look at it twice, 5 to 6 s apart.
	differsWithin = 40 * time.Second
	// divergedDir of a data directory holds the states then.
	divergedDir = "diverged"
)

// fork has the state of one broker become another than the others'. It must
// notice, stop, keep both states and say what to do; that done, it makes its state
// again.
func fork(ctx context.Context, r *run) error {
	m := r.byName(forkedSite)
	m.forked.Store(true)
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	// One that votes from its start on compares every 5 s, one that does not yet,
	// once a minute.
	if err := errors.Join(m.restartAt(ctx, m.place, 0), m.awaitReady(ctx)); err != nil {
		return err
	}
	m.mu.Lock()
	m.expects = true
	p := m.broker
	m.mu.Unlock()
	setting, stop := context.WithCancel(ctx)
	defer stop()
	r.setPolicies(setting)
	select {
	case <-p.done:
	case <-time.After(differsWithin):
		m.forked.Store(false) // now it is looked at like all others
		return broke(check.SameState, "the state of %s is another one, and it goes on", m.Name)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	stop()
	r.say("%s has stopped", m.Name)
	kept := filepath.Join(m.data(), divergedDir)
	if end := m.LogTail(5); !strings.Contains(end, "state differs from the federation's") || !strings.Contains(end, kept) {
		return broke(check.SameState, "%s ends without its reason and remedy: %s", m.Name, end)
	}
	if states, err := filepath.Glob(filepath.Join(kept, "*.snap")); err != nil || len(states) != 2 {
		return broke(check.SameState, "%s keeps %v, not two states (%v)", kept, states, err)
	}
	return r.mend(ctx, m, kept)
}

// mend does what the broker said: it does not start before.
func (r *run) mend(ctx context.Context, m *member, kept string) error {
	m.env = []string{mutateVar + "="} // it forks no more
	if err := m.launch(); err != nil {
		return err
	}
	m.mu.Lock()
	m.expects = true
	p := m.broker
	m.mu.Unlock()
	select {
	case <-p.done:
	case <-time.After(readyWait):
		return broke(check.SameState, "%s starts again although nobody has looked into it", m.Name)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := os.Rename(kept, filepath.Join(m.Dir, divergedDir)); err != nil {
		return fmt.Errorf("move the states of %s away: %w", m.Name, err)
	}
	m.forked.Store(false)
	err := errors.Join(m.launch(), m.awaitReady(ctx))
	if err != nil {
		return broke(check.Progress, "%s does not start as it was told: %s", m.Name, err)
	}
	r.compareStates(ctx)
	return nil
}
