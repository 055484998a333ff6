package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// twoAddresses has a voter advertise names that mean two addresses each: its own and
// one that nobody has, its own and another voter's. With either it and the leader are
// a quorum of three.
func twoAddresses(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	m := r.members[1]
	right := m.place
	for _, name := range []string{halfName, bothName} {
		if err := r.advertise(ctx, m, name); err != nil {
			return err
		}
		if err := killAll(r.members[2:]); err != nil {
			return err
		}
		if _, err := r.submit(ctx, 1, plan.Job{
			Name: name, Count: 1, Length: 100 * time.Millisecond,
			Sites: []int{1},
		}); err != nil {
			return err
		}
		if err := m.restartAt(ctx, right, 0); err != nil {
			return err
		}
		if err := r.launchAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// advertise restarts a broker with a name and waits until it is ready with it, or, if
// another site has the name, too, has been told so.
func (r *run) advertise(ctx context.Context, m *member, name string) error {
	at := m.place
	at.advertise = name
	r.say("%s advertises %q", m.Name, name)
	if err := m.restartAt(ctx, at, 0); err != nil {
		return err
	}
	if name != bothName {
		return m.awaitReady(ctx)
	}
	return within(ctx, readyWait, check.Progress, "a line that names the other site", func() error {
		if log := m.LogTail(50); !strings.Contains(log, bothName) || !strings.Contains(log, "site-3") ||
			!strings.Contains(log, "correct") {
			return errors.New("there is none")
		}
		return nil
	})
}
