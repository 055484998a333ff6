package core

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/after"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Jobs that wait for others are held by package after; here it is decided what they may name, how what they name
// stands, and where a released one goes.

const (
	// afterPerTurn and afterPerTick of the jobs that are waited for are looked for in a turn, and in a tick: that is
	// the net, for what is not told by JobsEndedEvent.
	afterPerTurn = 100
	afterPerTick = 1000
	// maxFollowing bounds the held jobs that one turn releases, and those that it ends; the next turn goes on.
	maxFollowing = 1000
	// patienceTicks is for how long nothing is released after a start without a quorum: the data may turn out to be an
	// old copy, with jobs that were released before. The shell takes no job for as long.
	patienceTicks = 50
)

// JobsEndedEvent says that jobs of this site may have ended. That one was left out costs time alone.
type JobsEndedEvent struct{ Nums []uint64 }

func (JobsEndedEvent) isEvent() {}

// ForeseeEvent asks what the job of a request would wait for, were it submitted now. Reply is called in the turn: words
// say what for, "" = nothing, or in vain that it would be cancelled at once, with why; errors are a submission's.
type ForeseeEvent struct {
	Req   node.Request
	Reply func(words string, vain bool, err error)
}

func (ForeseeEvent) isEvent() {}

// handleJobsEnded looks at once at what is waited for.
func (c *Core) handleJobsEnded(ev JobsEndedEvent, s StateReader, fx *Effects) {
	if c.after.Awaited() == 0 {
		return
	}
	for _, num := range ev.Nums {
		c.after.LookFor(num, c.standingIn(s), fx)
	}
}

// standingIn says how jobs of this site stand that are not held.
func (c *Core) standingIn(s StateReader) func(num uint64) after.Standing {
	return func(num uint64) after.Standing { return c.standingOf(num, s) }
}

func (c *Core) standingOf(num uint64, s StateReader) (st after.Standing) {
	id := command.JobID{Site: c.site, Num: num}
	state := fsm.Queued
	if a := c.after.Find(num); a != nil {
		if !a.Held() {
			state = fsm.TaskCancelled
		}
	} else if h := c.home.Find(num); h != nil {
		state = h.State()
	} else if c.pubs.Find(num) != nil {
		return st
	} else if counts, known := s.TaskCounts(id); known {
		state = counts.JobState()
	} else if c.incarnation != 0 { // before, the state may be older than what this site has published
		st.Missing, st.Retired = true, s.Retired(id)
	}
	if state.Ended() {
		st.Outcome = state.String()
	}
	return st
}

// outcomeOf returns how a job has ended, "" if it has not.
func (c *Core) outcomeOf(num uint64, s StateReader) string { return c.standingOf(num, s).Outcome }

// waitsFor finds the jobs that a request names to wait for, and has its spec name them by their ids. It returns none if
// all of them have ended as they are to. Errors are *jobspec.SpecError, or wrap node.ErrNotReady.
func (c *Core) waitsFor(req *node.Request, s StateReader) (on []after.Dep, err error) {
	if len(req.Spec.After) == 0 {
		return nil, nil
	}
	list := slices.Clone(req.Spec.After)
	done := true
	for i := range list {
		d := &list[i]
		name := d.Name()
		outcome, why := c.resolveOne(req, d, s)
		if why != "" {
			// By its name, for they are sorted: its place is not that in the request.
			return nil, &jobspec.SpecError{Field: "after", Value: strconv.Quote(name), Reason: why}
		}
		if d.When == jobspec.WhenEach {
			if err = c.checkEach(req.Spec.Count, d.Job, name, s); err != nil {
				return nil, err
			}
			continue // its tasks' gates wait for those
		}
		on = append(on, after.Dep{Num: d.Job.Num, When: d.When})
		done = done && outcome != "" && after.Allows(d.When, outcome)
	}
	if req.Spec, err = req.Spec.Resolved(list); done {
		on = nil
	}
	return on, err
}

// resolveOne finds one of them, and returns how it has ended, "" if it has not, or why it cannot be waited for.
func (c *Core) resolveOne(req *node.Request, d *jobspec.Dependency, s StateReader) (outcome, why string) {
	if d.Line > 0 {
		if why = c.resolveLine(req, d); why != "" {
			return "", why
		}
		d.Line = 0
	}
	switch num := d.Job.Num; {
	case d.Job.Site != c.site:
		return "", fmt.Sprintf("must be a job of this broker's site %s: those of another site are waited for at its own broker", c.site)
	case num >= c.nextJob:
		return "", "names no job that was accepted before this one: submit that first, or name its line of the same request as #n"
	case c.whose.UserOf(num) != req.User && !req.Operator:
		return "", "must be a job of your own"
	default:
		if outcome = c.after.Outcome(num); outcome == "" {
			st := c.standingOf(num, s)
			if outcome = st.Outcome; st.Missing {
				return "", "has ended so long ago that it is no longer kept, and how is not known: omit it, or name a job that is still listed"
			}
		}
		return outcome, ""
	}
}

// resolveLine finds the job that a line of the same request has become, or says why there is none.
func (c *Core) resolveLine(req *node.Request, d *jobspec.Dependency) (why string) {
	if req.Lines == nil {
		return "names a line, and this request is one job: name a job's id"
	}
	if d.Line >= req.Line {
		return fmt.Sprintf("must name a line before this one, which is line %d", req.Line)
	}
	num, ok := req.Lines.Job(d.Line)
	if !ok {
		return "names a line whose job was refused, or that has none"
	}
	d.Job = command.JobID{Site: c.site, Num: num}
	return ""
}

// foresee answers what a request's job would wait for, and takes nothing.
func (c *Core) foresee(ev ForeseeEvent, s StateReader) {
	on, err := c.waitsFor(&ev.Req, s)
	if err != nil {
		ev.Reply("", false, err)
		return
	}
	outcomeOf := func(num uint64) string { return cmp.Or(c.after.Outcome(num), c.outcomeOf(num, s)) }
	words, vain := c.after.Foresee(on, outcomeOf)
	if !vain {
		words = after.WithEach(words, ev.Req.Spec.After, outcomeOf)
	}
	ev.Reply(words, vain, nil)
}

// hold has a job wait for others, or for its inputs, and answers its request.
func (c *Core) hold(
	js command.JobSpec, on []after.Dep, req *node.Request, reply func(node.Answer), s StateReader, fx *Effects,
) {
	c.quotas.Wait(req.User, claimOf(&js))
	hold := c.after.Hold
	if req.Importing {
		hold = c.after.HoldForInputs
	}
	j := hold(js, on, req.User, func(num uint64) string { return c.outcomeOf(num, s) }, fx)
	a := node.Answer{
		ID: command.JobID{Site: c.site, Num: js.Num}, State: fsm.Queued.String(), Durability: node.DurableSite,
	}
	if why := c.after.InVain(j); why != "" {
		c.endHeld(c.after.Cancel(js.Num, why, fx))
		a.State, a.Reason = fsm.TaskCancelled.String(), why
	} else {
		a.Reason = c.after.WaitsFor(j)
	}
	fx.Reply(reply, a)
}

// endHeld counts a held job no more that has ended.
func (c *Core) endHeld(j *after.Job) { c.quotas.Unwait(j.User, claimOf(&j.Spec)) }

// followEnds records what has ended of what is waited for, ends what waits in vain, and has run what waits for nothing
// any more.
func (c *Core) followEnds(s StateReader, fx *Effects) {
	for _, num := range c.home.TakeEnded() {
		c.after.LookFor(num, c.standingIn(s), fx)
	}
	c.after.Look(afterPerTurn, c.standingIn(s), fx)
	for _, j := range c.after.End(maxFollowing, fx) {
		c.endHeld(j)
	}
	if c.incarnation != 0 || c.ticks > patienceTicks {
		c.releaseHeld(s, fx)
	}
	c.after.FlushEvents(fx)
}

// releaseHeld has run what waits for nothing any more, each job as if it were submitted now. Their clients were
// promised them.
func (c *Core) releaseHeld(s StateReader, fx *Effects) {
	for _, j := range c.after.Release(maxFollowing, fx) {
		c.endHeld(j)
		p := publish.Job{Spec: j.Spec, User: j.User, Promised: true}
		p.Spec.Gated = j.Spec.Gated || c.gates.Find(j.Spec.Num).Asked()
		c.send(p, c.wayOf(&p.Spec, p.User, s), s, fx)
	}
}
