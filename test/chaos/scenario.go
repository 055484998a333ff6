package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// The timing of every scenario that does not say otherwise: the LAN profile.
const (
	lease  = 6 * time.Second
	margin = time.Second
	// lag of what follows a lease's end: noticing it, ordering the loss,
	// starting elsewhere, on a busy machine.
	lag = 5 * time.Second
)

// scenario is a written course of events that makes one promise hard to keep.
type scenario struct {
	name string
	says string // what happens, and what must not
	fleetOptions
	play func(ctx context.Context, r *run) error
	// without are safeguards that its brokers always work without, and faults of their
	// own: it needs a binary built with -tags mutate, and all others leave it out.
	without string
}

func scenarios() []scenario {
	three := fleetOptions{sites: 3, cores: 1}
	two := fleetOptions{sites: 2, cores: 1}
	disks := three
	disks.disks = true
	slow := three
	slow.slow = true
	long := three
	long.lines = []string{"lease: " + longLease.String()}
	five := fleetOptions{sites: 5, cores: 1, lines: []string{"lease: " + wideLease.String()}}
	voters := fleetOptions{sites: 5, cores: 1}
	wide := three
	wide.lines = []string{"margin: " + wideMargin.String()}
	grown := fleetOptions{sites: 5, guests: 1, cores: 1}
	chains := fleetOptions{sites: 3, cores: 2, disks: true}
	rivals := three
	rivals.hostile = 1
	return append(mutants(), []scenario{
		{"dead-site", "a broker dies for good: its foreign task ends by itself, then runs elsewhere; its own waiting job is withdrawn until it returns", three, deadSite, ""},
		{"fence", "a cut-off site's stubborn foreign task is killed before it is requeued: no overlap", three, fence, ""},
		{"slow-supervisor", "a supervisor that runs late by less than the margin still kills in time: no overlap", wide, slowSupervisor, ""},
		{"lead-change", "the leader dies as a site is cut off: the next leader knows no leases and waits: no overlap", five, leadChange, ""},
		{"stale-report", "an attempt that was given up reports its end later: the task's end stays that of the later attempt", three, staleReport, ""},
		{"repeat", "an answer is lost and the command sent again, after a later one undid it: it is executed once", long, repeat, ""},
		{"power", "the power fails right after an acknowledgement: the job and its key are still known", disks, power, ""},
		{"chain", "the broker of a site whose jobs wait for each other is killed, or its power fails, whenever one has ended: what follows begins once, and not before; what is held by hand begins not at all", chains, chainBroken, ""},
		{"full-disk", "a site's disk is nearly full: it takes no new jobs and goes on with what it has; a full one stops its broker, which says why and returns", disks, fullDisk, ""},
		{"phantom", "a voter advertises another's address, as a name, and three of five die: the two that are left acknowledge nothing as the federation's", voters, phantom, ""},
		{"reused-address", "a voter moves to the address of a dead one, and three of five die: nobody counts it twice", voters, reusedAddress, ""},
		{"typo", "a voter restarts with a mistyped address: it is still heard where it was, and at home again once that is put right", three, typo, ""},
		{"spelled", "a voter's address is written in every way: each is the same broker", three, spelled, ""},
		{"two-addresses", "a voter's name means two addresses: beside one that nobody has it is the same broker, beside another's it is told so, and stays where it was", three, twoAddresses, ""},
		{"moved-all", "all brokers restart on other peer ports at once: they find each other", three, movedAll, ""},
		{"paused-and-lost", "a leader is paused until it is lost, cannot register again and is made leader: others are still judged", three, pausedAndLost, ""},
		{"slow-leader", "each sync of the leader takes 100 ms, then 1 s longer: a voter with a fast disk leads instead, and nobody waits", slow, slowLeader, ""},
		{"far-leader", "the leader is 150 ms from all others, most of which are within 10 ms: one of those leads instead, and goes on leading", voters, farLeader, ""},
		{"silent", "a stranger keeps connections to all peer ports open and says nothing as all brokers start again: a leader is elected", three, silent, ""},
		{"forged-term", "a stranger asks for votes in the last term there is: nobody believes it", three, forgedTerm, ""},
		{"other-name", "a stranger says in one member's name, on and on, that the dead leader leads: another is elected", three, otherName, ""},
		{"own-pause", "the only voter is paused past the lease and leads still: it gives up no site that it could not hear meanwhile", two, ownPause, ""},
		{"hostile", "a site turns against the others while it leads, and while another one does: it forges, replays, floods, talks nonsense, reorders and censors; between honest sites nothing is lost, ended or started twice by it", rivals, hostileMember, ""},
		{"members", "while jobs run, a site is expelled and let in again, another gets a new key, and one joins while those that let it in are killed: what the expelled one ran runs elsewhere, its own waits", grown, changeMembers, ""},
		{"alone", "a cut-off site goes on with its own users' jobs and says so; what may have been sent runs once", three, alone, ""},
	}...)
}

// mutants returns the scenarios of brokers that are not as they should be.
func mutants() []scenario {
	three := fleetOptions{sites: 3, cores: 1}
	return []scenario{
		{"phantom-heard", "phantom, where the other takes connections that mean the voter", fleetOptions{sites: 5, cores: 1}, phantom, "no-meant-site"},
		{"fork", "the state of one broker becomes another one: it notices, stops, and keeps both", three, fork, forkIt},
	}
}

// playScenario runs one in a folder and returns what it found.
func playScenario(ctx context.Context, s scenario, on stage, dir string) ([]check.Violation, error) {
	opts := s.fleetOptions
	on.mutate = strings.Trim(s.without+","+on.mutate, ",")
	opts.binary, opts.dir, opts.env, opts.zk, opts.slowfs = on.binary, dir, on.env(), on.zk, on.slowfs
	opts.hostileBinary = on.hostileBinary
	fmt.Println(s.says)
	r, err := newRun(ctx, opts, on.marker, os.Stdout)
	if err != nil {
		return nil, err
	}
	r.forks = strings.Contains(s.without, forkIt)
	err = r.blameBroken(s.play(ctx, r)) // what a step waited for did not come
	if err == nil {
		var none sync.WaitGroup
		err = r.finish(ctx, &none, func() {})
	}
	found, closed := r.close()
	return found, errors.Join(err, closed)
}

// brokenError ends a scenario because a promise was broken.
type brokenError struct{ check.Violation }

// Error implements error.
func (e *brokenError) Error() string { return e.String() }

func broke(rule check.Rule, format string, args ...any) error {
	return &brokenError{check.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}}
}

// submit has a site take one job and returns its id.
func (r *run) submit(ctx context.Context, site int, j plan.Job) (string, error) {
	if j.Tries == 0 {
		j.Tries = 1
	}
	if j.OnLoss == "" {
		j.OnLoss = check.Fenced
	}
	o := r.track(plan.Order{At: time.Since(r.began), Site: site, Key: j.Name, Jobs: []plan.Job{j}})
	ctx, cancel := context.WithTimeout(ctx, agreeWithin)
	defer cancel()
	r.say("%s", o.Order)
	if !r.untilAcknowledged(ctx, o) {
		return "", broke(check.Progress, "%s was not acknowledged within %s", j.Name, agreeWithin)
	}
	return o.ids[0][0], nil
}

// within waits for a condition; not to see it in time breaks the rule.
func within(ctx context.Context, d time.Duration, rule check.Rule, what string, cond func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("not within %s", d))
	defer cancel()
	if err := testbed.Await(ctx, what, cond); err != nil {
		return broke(rule, "%s", err)
	}
	return nil
}

// attempt waits until an attempt of a job's only task has left its first mark.
func (r *run) attempt(ctx context.Context, id string, number int, d time.Duration) (check.Attempt, error) {
	var found check.Attempt
	err := within(ctx, d, check.Progress, fmt.Sprintf("attempt %d of %s", number, id), func() error {
		m, err := r.readMarks()
		if err != nil {
			return testbed.Final(err)
		}
		for _, a := range m.Of(id, 0) {
			if a.Attempt == number {
				found = a
				return nil
			}
		}
		return errors.New("it left no mark")
	})
	return found, err
}

func (r *run) readMarks() (check.Marks, error) {
	text, err := os.ReadFile(r.marks)
	if err != nil {
		return check.Marks{}, fmt.Errorf("read marks: %w", err)
	}
	return check.ReadMarks(string(text))
}

// siteState waits until a broker shows a site as it should be.
func (r *run) siteState(ctx context.Context, at, of *member, d time.Duration, state string) error {
	return within(ctx, d, check.Progress, of.Name+" "+state, func() error {
		info, err := at.Info(ctx, of.Name)
		if err == nil && info.State != state {
			err = fmt.Errorf("%s shows it as %s", at.Name, info.State)
		}
		return err
	})
}
