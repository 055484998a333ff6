package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/estimate"
)

// AskedAt is the moment at which somebody asks when a job starts.
type AskedAt uint8

const (
	// AskedAtSubmission is the end of the second in which the job was submitted, if all
	// of it waits then.
	AskedAtSubmission AskedAt = iota
	// AskedWhileWaiting is each full hour, of a few of the jobs that wait then.
	AskedWhileWaiting
	// AskedKinds is how many moments there are.
	AskedKinds
)

// String returns the moment's name in reports.
func (a AskedAt) String() string {
	if a == AskedAtSubmission {
		return "submission"
	}
	return "waiting"
}

const (
	// sampleEvery is how often, in seconds, an estimator looks at machines while nothing
	// happens. Live it is each second; waits here are of minutes and hours.
	sampleEvery = 10
	// askEvery is how often, in seconds, somebody asks about jobs that wait.
	askEvery = 3600
	// mostAsked jobs are asked about at such a moment.
	mostAsked = 20
)

// LiveParams returns the parameters of a new federation under a policy, but for leases,
// which simulated sites do not renew.
func LiveParams(policy string) command.Params {
	p := Params(policy)
	live := command.DefaultParams()
	p.ClaimedHome, p.PreferOwn, p.ReserveAfterMs = live.ClaimedHome, live.PreferOwn, live.ReserveAfterMs
	return p
}

// asker lets a broker's own estimator learn from a run as it does live, asks it when jobs
// start, and compares its answers with what came.
type asker struct {
	*player
	estimator *estimate.Estimator
	events    []fsm.Event
	unstarted []command.JobID // published jobs; those that wait no longer leave with the next hour
	questions map[command.JobID][]question
	hour      int64
	answers   [AskedKinds]Answers
}

// question is an estimate whose start has not been seen.
type question struct {
	at       AskedAt
	atMs     int64
	estimate node.Estimate
}

// PlayEstimates plays a case and returns how the estimates of starts came out, by the
// moment at which they were asked for.
func PlayEstimates(ctx context.Context, c *Case) ([]Answers, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p, err := newPlayer(c, fsm.New())
	if err != nil {
		return nil, err
	}
	a := &asker{player: p, estimator: estimate.NewEstimator(), questions: map[command.JobID][]question{}}
	p.state.Observe(&a.events)
	if err := a.run(ctx); err != nil {
		return nil, err
	}
	return a.answers[:], nil
}

// run plays every second in which something happens, and idle ones between them.
func (a *asker) run(ctx context.Context) error {
	if err := a.found(); err != nil {
		return err
	}
	for a.open > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("at second %d: %w", a.now, context.Cause(ctx))
		}
		next, ok := a.nextSecond()
		if !ok {
			return fmt.Errorf("%w: %d tasks are left at second %d", ErrStuck, a.open, a.now)
		}
		play := func() error { return a.second(ctx, next) }
		if idle := min(a.now+sampleEvery, next-1); idle > a.now {
			play = func() error { return a.idleTick(idle) }
		}
		if err := play(); err != nil {
			return err
		}
		a.learn()
	}
	return nil
}

// idleTick moves log time on. What it sets going, such as a reservation, goes on at once.
func (a *asker) idleTick(second int64) error {
	a.now = second
	for _, s := range a.sites {
		s.driver.At(time.Duration(second) * time.Second)
	}
	if _, err := a.entry(); err != nil {
		return err
	}
	return a.order()
}

// learn passes the second on to the estimator and asks what is to be asked in it.
func (a *asker) learn() {
	var came []command.JobID
	for i := range a.events {
		e := &a.events[i]
		a.estimator.Observe(e)
		switch e.Kind {
		case fsm.EventJobSubmitted:
			came = append(came, e.Job)
		case fsm.EventTaskAssigned:
			a.compare(e)
		default:
		}
	}
	a.events = a.events[:0]
	a.estimator.Sample(a.state)
	for _, id := range came {
		a.askStart(id, AskedAtSubmission)
	}
	a.unstarted = append(a.unstarted, came...)
	if hour := a.now / askEvery; hour != a.hour {
		a.hour = hour
		a.askWaiting()
	}
}

// askWaiting asks about some of the jobs that wait, chosen by a hash.
func (a *asker) askWaiting() {
	a.unstarted = slices.DeleteFunc(a.unstarted, func(id command.JobID) bool {
		v, ok := a.state.Job(id)
		return !ok || v.Counts[fsm.Queued] == 0
	})
	lot := func(id command.JobID) uint64 { return fsm.Mix(fsm.Mix(id.Num) ^ uint64(a.hour)) }
	chosen := slices.Clone(a.unstarted)
	slices.SortFunc(chosen, func(x, y command.JobID) int {
		return cmp.Or(cmp.Compare(lot(x), lot(y)), cmp.Compare(x.Site, y.Site))
	})
	for _, id := range chosen[:min(len(chosen), mostAsked)] {
		a.askStart(id, AskedWhileWaiting)
	}
}

// askStart asks when a job's next task starts, if one waits.
func (a *asker) askStart(id command.JobID, at AskedAt) {
	v, ok := a.state.Why(id)
	if !ok || v.Waiting == 0 {
		return
	}
	to := &a.answers[at]
	to.Asked++
	if e := a.estimator.Estimate(&v); e.Unknown == "" {
		a.questions[id] = append(a.questions[id], question{at, a.state.Time(), e})
	}
}

// compare notes how the estimates of a job came out whose next task starts.
func (a *asker) compare(e *fsm.Event) {
	for _, q := range a.questions[e.Job] {
		a.answers[q.at].add(q.estimate, time.Duration(e.Time-q.atMs)*time.Millisecond)
	}
	delete(a.questions, e.Job)
}
