package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// What the hostile site's broker does while it leads; see node/coord/relay/hostile_on.go. It orders in others' names
// what they have not said, and again what they have; it names calls where other commands stand, and turns the order.
const (
	leadsFalsely = "leader-forges,leader-misplaces,leader-reorders"
	leadsBlindly = leadsFalsely + ",leader-censors"
	// blindFor a site is left out at most, of each fault.
	blindFor = 3 * time.Second
)

// hostility is the file that tells the site's broker what to do, and to whom.
func (m *member) hostility() string { return filepath.Join(m.Dir, "hostile") }

// turn has the broker be hostile from now on, if it leads; "" = to nobody.
func (m *member) turn(how, victim string) error {
	text := ""
	if how != "" {
		text = strings.TrimSpace(m.Name + " " + how + " " + victim)
	}
	if err := os.WriteFile(m.hostility(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("turn %s: %w", m.Name, err)
	}
	return nil
}

// did returns how many times the broker, since its last start, has done a thing.
func (m *member) did(what string) (int, error) {
	text, err := os.ReadFile(m.hostility() + "." + what)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask what %s did: %w", m.Name, err)
	}
	n, _ := strconv.Atoi(string(text)) // it is being written
	return n, nil
}

// pacify has the hostile site keep to the protocol again.
func (r *run) pacify() error {
	if r.hostile == 0 {
		return nil
	}
	return r.members[r.hostile-1].turn("", "")
}

// beginHostile has the run's hostile site turn, whatever other fault it is under.
func (r *run) beginHostile(ctx context.Context, f plan.Fault) {
	m := r.members[r.hostile-1]
	victim := rotate(r.honest(), f.Number)[0]
	r.say("%s turns hostile, to %s most of all, for %s", m.Name, victim.Name, f.For)
	r.faults.going.Go(func() {
		err := r.misbehave(ctx, m, victim, f.For, acts{})
		forged, cause := m.did("leader-forges")
		err = errors.Join(err, cause)
		r.say("%s keeps to the protocol again; since it started %d entries of its own held forgeries", m.Name, forged)
		r.faults.give(nil, err)
		r.compareStates(ctx)
	})
}

// misbehave has a site be hostile for a time: all the while as a member, and wherever it leads as the leader, which
// censors the victim, if there is one, towards the end.
func (r *run) misbehave(ctx context.Context, m, victim *member, d time.Duration, least acts) error {
	blind := min(d/2, blindFor)
	abuse, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- r.abuse(abuse, m) }()
	err := m.turn(leadsFalsely, "")
	if sleep(ctx, d-blind) == nil && victim != nil {
		err = errors.Join(err, m.awaitDone(ctx, "leader-forges-ends", least.forgedEnds), m.turn(leadsBlindly, victim.Name))
	}
	_ = sleep(ctx, blind) // the run's end: it is taken back then
	err = errors.Join(err, m.awaitDone(ctx, "leader-censors", least.censored))
	stop()
	return errors.Join(err, m.turn("", ""), <-done)
}

// acts is how often a leader does what, at least, before it keeps to the protocol again.
type acts struct{ forgedEnds, censored int }

// awaitDone waits until a hostile leader has done something so often: what it does to entries it can do only once there
// are some.
func (m *member) awaitDone(ctx context.Context, what string, least int) error {
	if least == 0 {
		return nil
	}
	return within(ctx, 3*hostileFor, check.Progress, m.Name+" does "+what, func() error {
		n, err := m.did(what)
		if err == nil && n < least {
			err = fmt.Errorf("%d times, not %d: the scenario is not what it says", n, least)
		}
		return err
	})
}
