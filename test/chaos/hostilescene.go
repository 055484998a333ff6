package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

const (
	// hostileFor a site is hostile, as the leader and then as another one.
	hostileFor = 3 * time.Second
	// forgedEnds of running attempts, at least, are ordered in another site's name.
	forgedEnds = 5
)

// hostileMember has the site that leads turn against the others, and again once another one leads; meanwhile the honest
// ones run each other's tasks, and one of them is killed.
func hostileMember(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	m, rest := r.members[r.hostile-1], r.honest()
	if lead := r.leadName(ctx); lead != m.Name {
		return fmt.Errorf("%s leads, not the founder", lead)
	}
	ctx, cancel := context.WithCancel(ctx)
	late := make(chan error, 1)
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel()
	least := acts{forgedEnds: forgedEnds, censored: 1}
	err := r.hostileFor(ctx, m, rest[0], rest, "under-it", least, func() error {
		waits.Go(func() { // until another one leads
			late <- errors.Join(sleep(ctx, hostileFor/2), r.short(ctx, rest[0], "censored"))
		})
		return nil
	})
	if err != nil {
		return err
	}
	r.say("kill %s", m.Name)
	if err := m.end(syscall.SIGKILL); err != nil {
		return err
	}
	if err := errors.Join(<-late, r.leadsAnother(ctx, m, rest[0])); err != nil {
		return err
	}
	if err := m.launch(); err != nil {
		return err
	}
	if err := m.awaitReady(ctx); err != nil {
		return err
	}
	// It may lead again, for one of the two others is killed; a call that it censored then would be sent again late.
	return r.hostileFor(ctx, m, nil, rest, "beside-it", acts{}, func() error {
		r.say("kill %s", rest[0].Name)
		err := r.down(ctx, time.Second, rest[:1], func(m *member) error { return m.end(syscall.SIGKILL) })
		return errors.Join(err, r.short(ctx, rest[0], "after-it"))
	})
}

// short has a site order some tasks that take no time.
func (r *run) short(ctx context.Context, by *member, name string) error {
	_, err := r.submit(ctx, r.number(by), plan.Job{Name: name, Count: 3, Length: 100 * time.Millisecond})
	return err
}

// hostileFor has a site be hostile, and censor another, while each of two others runs a task of the other one, and
// something else happens.
func (r *run) hostileFor(
	ctx context.Context, m, victim *member, rest []*member, name string, least acts, also func() error,
) error {
	var err error
	for i, owner := range rest {
		at := rest[(i+1)%len(rest)]
		id, refused := r.submit(ctx, r.number(owner), plan.Job{
			Name: fmt.Sprintf("%s-%d", name, i+1), Count: 1, Length: 2 * hostileFor, Stubborn: true,
			Sites: []int{r.number(at)},
		})
		if refused == nil {
			_, refused = r.attempt(ctx, id, 1, lag)
		}
		err = errors.Join(err, refused)
	}
	r.say("%s turns hostile", m.Name)
	done := make(chan error, 1)
	go func() { done <- r.misbehave(ctx, m, victim, hostileFor, least) }()
	return errors.Join(err, also(), <-done)
}

// leadsAnother waits until another site leads.
func (r *run) leadsAnother(ctx context.Context, than, ask *member) error {
	return within(ctx, electionWithin+lag, check.Progress, "another leader than "+than.Name, func() error {
		st, err := ask.Status(ctx)
		if err == nil && (st.Leader == "" || st.Leader == than.Name) {
			err = fmt.Errorf("%q leads", st.Leader)
		}
		return err
	})
}
