package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// brief is how long each step of a chain runs.
const brief = 200 * time.Millisecond

// links are jobs of site 2 that wait for each other, of all kinds: at home, elsewhere, arrays, task by task, with
// failures and pauses; one of them waits in vain.
func links() []plan.Job {
	elsewhere := []int{1, 3}
	link := func(j plan.Job, after ...plan.Wait) plan.Job {
		j.Length, j.OnLoss, j.After = brief, check.Fenced, after
		j.Count, j.Tries = max(j.Count, 1), max(j.Tries, 1)
		return j
	}
	return []plan.Job{
		link(plan.Job{Name: "link-1", Home: true}),
		link(plan.Job{Name: "link-2", Sites: elsewhere}, plan.Wait{Job: "link-1", When: check.WhenOK}),
		link(plan.Job{Name: "link-3", Count: 3, Parallel: 2, Sites: elsewhere}, plan.Wait{Job: "link-2", When: check.WhenOK}),
		link(plan.Job{Name: "link-4", Count: 3, Parallel: 2, First: brief, Exit: 7, Tries: 2, Backoff: brief, OnlyOn: 7},
			plan.Wait{Job: "link-3", When: check.WhenEach}),
		link(plan.Job{Name: "link-5", Home: true}, plan.Wait{Job: "link-4", When: check.WhenOK}),
		link(plan.Job{Name: "in-vain"}, plan.Wait{Job: "link-5", When: check.WhenNotOK}),
		link(plan.Job{Name: "link-6", Home: true}, plan.Wait{Job: "in-vain", When: check.WhenAny},
			plan.Wait{Job: "link-5", When: check.WhenOK}),
		link(plan.Job{Name: "link-7", Sites: elsewhere}, plan.Wait{Job: "link-6", When: check.WhenOK}),
	}
}

// brokenLink says when the owner's broker is killed: so long after the end of a step, or its power fails.
type brokenLink struct {
	name  string
	tasks int
	after time.Duration
	power bool
}

// chainBroken kills the owner's broker between the end of a job and what follows it, step by step, and takes its
// power. Another job is held by hand all the while.
func chainBroken(ctx context.Context, r *run) error {
	m := r.members[1]
	hand, err := r.holdAside(ctx, m)
	if err != nil {
		return err
	}
	o := r.track(plan.Order{At: time.Since(r.began), Site: 2, Key: "links", Jobs: links()})
	if !r.untilAcknowledged(ctx, o) {
		return context.Cause(ctx)
	}
	for _, b := range []brokenLink{
		{"link-1", 1, 0, false},
		{"link-2", 1, 3 * time.Millisecond, false},
		{"link-3", 3, 20 * time.Millisecond, false},
		{"link-4", 3, 0, false},
		{"link-5", 1, 3 * time.Millisecond, true},
		{"link-6", 1, 5 * time.Millisecond, false},
	} {
		if err := r.breakLink(ctx, m, b); err != nil {
			return err
		}
	}
	return r.letGo(ctx, hand)
}

// breakLink kills the owner's broker just after the last task of a step has ended, and starts it again.
func (r *run) breakLink(ctx context.Context, m *member, b brokenLink) error {
	r.mu.Lock()
	id := r.idOf(b.name)
	r.mu.Unlock()
	if err := r.awaitMarks(ctx, id, b.tasks); err != nil {
		return err
	}
	if err := sleep(ctx, b.after); err != nil {
		return err
	}
	fault, kill := "kill", func() error { return m.end(syscall.SIGKILL) }
	if b.power {
		fault, kill = "power failure", func() error { return m.powerCut(ctx) }
	}
	r.say("%s of %s, %s after %s has ended", fault, m.Name, b.after, b.name)
	if err := kill(); err != nil {
		return err
	}
	return m.launch()
}

// awaitMarks waits until so many tasks of a job have succeeded, by their marks: before their owner knows.
func (r *run) awaitMarks(ctx context.Context, id string, tasks int) error {
	const look = 2 * time.Millisecond
	until := time.Now().Add(agreeWithin)
	for time.Now().Before(until) {
		m, err := r.readMarks()
		if err != nil {
			return err
		}
		done := 0
		for i := range tasks {
			if list := m.Of(id, i); len(list) > 0 && list[len(list)-1].Ended && list[len(list)-1].Code == 0 {
				done++
			}
		}
		if done == tasks {
			return nil
		}
		if err := sleep(ctx, look); err != nil {
			return err
		}
	}
	return broke(check.Progress, "%s did not end within %s", id, agreeWithin)
}

// holdAside has a site own two jobs that wait for one that takes a while. One of them is held by hand: its order is
// returned.
func (r *run) holdAside(ctx context.Context, m *member) (*order, error) {
	n := r.number(m)
	late := plan.Wait{Job: "late", When: check.WhenOK}
	for _, j := range []plan.Job{
		{Name: "late", Count: 1, Length: 4500 * time.Millisecond, Sites: []int{3}},
		{Name: "witness", Count: 1, Length: brief, After: []plan.Wait{late}},
		{Name: "hand", Count: 2, Length: brief, Parallel: 1, After: []plan.Wait{late}},
	} {
		if _, err := r.submit(ctx, n, j); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	hand := r.orders[len(r.orders)-1]
	r.mu.Unlock()
	if !r.setHold(ctx, hand, hand.ids[0][0], true) {
		return nil, fmt.Errorf("%s cannot be held by hand", hand.ids[0][0])
	}
	return hand, nil
}

// letGo waits until what is held by hand could begin otherwise, looks whether it has not, and lets it go.
func (r *run) letGo(ctx context.Context, hand *order) error {
	r.mu.Lock()
	witness, held := r.idOf("witness"), hand.ids[0][0]
	r.mu.Unlock()
	if _, err := r.attempt(ctx, witness, 1, agreeWithin); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	m, err := r.readMarks()
	if err != nil {
		return err
	}
	for _, a := range m.Of(held, 0) {
		r.violated(check.ByHand, "%s has started, and is held by hand", a)
	}
	if !r.setHold(ctx, hand, held, false) && ctx.Err() == nil {
		r.violated(check.ByHand, "%s ended while it was held by hand", held)
	}
	return ctx.Err()
}
