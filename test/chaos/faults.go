package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// faultSet remembers what is under a fault, so that two do not meet in one
// site by accident and that all can be taken back.
type faultSet struct {
	mu    sync.Mutex
	busy  map[string]bool // site → a fault is on
	going sync.WaitGroup
	errs  []error
}

// take reserves the first free site of a list; nil if there is none.
func (s *faultSet) take(candidates []*member) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range candidates {
		if !s.busy[m.Name] {
			if s.busy == nil {
				s.busy = map[string]bool{}
			}
			s.busy[m.Name] = true
			return m
		}
	}
	return nil
}

// takeAll reserves all sites, or none if one is under a fault.
func (s *faultSet) takeAll(all []*member) []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range all {
		if s.busy[m.Name] {
			return nil
		}
	}
	s.busy = map[string]bool{}
	for _, m := range all {
		s.busy[m.Name] = true
	}
	return all
}

func (s *faultSet) give(list []*member, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range list {
		delete(s.busy, m.Name)
	}
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// on reports whether a site is under a fault.
func (s *faultSet) on(m *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy[m.Name]
}

// sleepUntilFaults waits for a moment and begins the plan's faults on the way.
func (r *run) sleepUntilFaults(ctx context.Context, p *plan.Plan, at time.Duration) error {
	for len(p.Faults) > 0 && p.Faults[0].At <= at {
		f := p.Faults[0]
		p.Faults = p.Faults[1:]
		if err := r.sleepUntil(ctx, f.At); err != nil {
			return err
		}
		r.begin(ctx, f)
	}
	if at == 1<<62 {
		return nil
	}
	return r.sleepUntil(ctx, at)
}

// begin a fault; it is taken back in the background.
func (r *run) begin(ctx context.Context, f plan.Fault) {
	if f.Kind == plan.Hostile {
		r.beginHostile(ctx, f)
		return
	}
	targets := r.targets(ctx, f)
	if len(targets) == 0 {
		r.say("%s %s: left out, no site is free for it", f.Kind, f.Role)
		return
	}
	for _, m := range targets {
		r.say("%s %s, the %s, for %s", f.Kind, m.Name, f.Role, f.For)
	}
	r.faults.going.Go(func() {
		err := r.suffer(ctx, f, targets)
		for _, m := range targets {
			r.say("%s of %s is over", f.Kind, m.Name)
		}
		r.faults.give(targets, err)
		r.compareStates(ctx)
	})
}

// targets resolves a role and reserves the sites.
func (r *run) targets(ctx context.Context, f plan.Fault) []*member {
	if f.Role == plan.Everyone {
		return r.faults.takeAll(r.members)
	}
	candidates := rotate(r.members, f.Number-1)
	lead := r.leadName(ctx)
	rank := func(*member) int { return 0 }
	switch f.Role {
	case plan.Some, plan.Everyone: // in their order
	case plan.Lead:
		rank = func(m *member) int { return boolInt(m.Name != lead) }
	case plan.Follower:
		rank = func(m *member) int { return boolInt(m.Name == lead) }
	case plan.Executing:
		foreign := r.foreignTasks(ctx)
		rank = func(m *member) int { return 2*-foreign[m.Name] + boolInt(m.Name == lead) }
	}
	slices.SortStableFunc(candidates, func(a, b *member) int { return cmp.Compare(rank(a), rank(b)) })
	if m := r.faults.take(candidates); m != nil {
		return []*member{m}
	}
	return nil
}

func rotate(list []*member, n int) []*member {
	n %= len(list)
	return slices.Concat(list[n:], list[:n])
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// suffer carries a fault out and takes it back after its time.
func (r *run) suffer(ctx context.Context, f plan.Fault, targets []*member) error {
	switch f.Kind {
	case plan.Kill, plan.KillAll, plan.Restart:
		sig := syscall.SIGKILL
		if f.Kind == plan.Restart {
			sig = syscall.SIGTERM
		}
		return r.down(ctx, f.For, targets, func(m *member) error { return m.end(sig) })
	case plan.Crash:
		return r.down(ctx, f.For, targets, (*member).crash)
	case plan.Power:
		return r.down(ctx, f.For, targets, func(m *member) error { return m.powerCut(ctx) })
	case plan.Stop:
		return r.pause(ctx, f.For, targets[0])
	case plan.WrongAddress:
		return r.mistype(ctx, f.For, targets[0], nobody)
	case plan.OtherAddress:
		return r.mistype(ctx, f.For, targets[0], rotate(r.members, r.number(targets[0]))[0].host.Addr)
	case plan.Move, plan.MoveAll, plan.Spelling:
		return r.move(ctx, f, targets)
	case plan.SlowDisk:
		return r.slowDown(ctx, f, targets[0])
	default:
		heal := r.lab.Cut(rules(f.Kind, r.number(targets[0]))...)
		defer heal()
		return ignoreEnd(ctx, sleep(ctx, f.For))
	}
}

// rules of a cut.
func rules(kind plan.Kind, host int) []netlab.Rule {
	switch kind {
	case plan.CutOut:
		return []netlab.Rule{{From: host}}
	case plan.CutIn:
		return []netlab.Rule{{To: host}}
	case plan.CutGossip:
		return slices.Concat(netlab.Isolate(host, gossipPort), netlab.Isolate(host, gossipPort+movedBy))
	case plan.CutPeer:
		return slices.Concat(netlab.Isolate(host, peerPort), netlab.Isolate(host, peerPort+movedBy))
	default:
		return netlab.Isolate(host, netlab.Any)
	}
}

func (r *run) number(m *member) int { return slices.Index(r.members, m) + 1 }

// down takes brokers away, all at once, and starts them again.
func (r *run) down(ctx context.Context, d time.Duration, targets []*member, kill func(*member) error) error {
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, m := range targets {
		all.Go(func() { errs[i] = kill(m) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := ignoreEnd(ctx, sleep(ctx, d)); err != nil {
		return err
	}
	for i, m := range targets {
		errs[i] = m.launch()
	}
	for _, m := range targets {
		m.listening(ctx)
	}
	return errors.Join(errs...)
}

// listening waits until the broker answers, or gives up: without a quorum it
// may not.
func (m *member) listening(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	_ = testbed.Await(ctx, m.Name+" answering", func() error { // the deadline is no failure
		if !m.up() {
			return nil
		}
		_, err := m.Status(ctx)
		return err
	})
}

// ignoreEnd makes the run's end no failure: everything is taken back then.
func ignoreEnd(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// crash kills everything at the site, as if its machine had gone.
func (m *member) crash() error {
	if err := m.end(syscall.SIGKILL); err != nil {
		return err
	}
	_, err := killUnder(m.Dir)
	return err
}

// powerCut is a crash after which the disk has only what was synced.
func (m *member) powerCut(ctx context.Context) error {
	if m.disk == nil {
		return fmt.Errorf("%s has no disk that could lose power", m.Name)
	}
	err := m.crash()
	if m.slow != nil {
		err = errors.Join(err, m.slow.close())
	}
	if err != nil {
		return err
	}
	if err = m.disk.powerCut(ctx); err == nil && m.slow != nil {
		err = m.slow.mount()
	}
	return err
}

// pause stops the broker with SIGSTOP; it knows nothing of it.
func (r *run) pause(ctx context.Context, d time.Duration, m *member) error {
	if err := m.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := sleep(ctx, d)
	return errors.Join(ignoreEnd(ctx, err), m.Signal(syscall.SIGCONT))
}

// healAll waits for the faults' ends and takes back what may be left. A broker
// that does not get ready then breaks a promise, and nothing more can be judged.
func (r *run) healAll(ctx context.Context) error {
	r.faults.going.Wait()
	r.lab.HealAll()
	if err := r.pacify(); err != nil {
		return err
	}
	for _, m := range r.members {
		if m.began() && !m.up() {
			if err := m.launch(); err != nil {
				return err
			}
		}
	}
	r.say("everything is healed")
	if err := errors.Join(r.faults.errs...); err != nil {
		return fmt.Errorf("inject faults: %w", err)
	}
	for _, m := range r.honest() {
		if err := m.awaitReady(ctx); err != nil {
			return broke(check.Progress, "%s", err)
		}
	}
	r.compareStates(ctx)
	return nil
}
