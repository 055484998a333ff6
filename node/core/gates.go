package core

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/gates"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Jobs whose tasks are released one by one: package gates decides when. They never run at home, but all go to the
// federation: one place holds their tasks, and it is not lost with this site's disk. Only what is at home already when
// a user holds it stays there.

// HoldEvent says that a user holds a job by hand, or lets it go.
type HoldEvent struct {
	Num   uint64
	Hold  bool
	Reply func(error)
}

func (HoldEvent) isEvent() {}

func (c *Core) newGates() gates.Book {
	return gates.NewBook(gates.Site{
		Name: c.site, Now: &c.now, Out: &c.out,
		Read:    func(js *command.JobSpec) (jobspec.Spec, error) { return jobspec.SpecOf(*js, c.sealer) },
		Pending: c.isPending,
		Own:     c.elementsOf,
	})
}

// isPending reports whether a job may yet be in the state that is not.
func (c *Core) isPending(num uint64) bool {
	h := c.home.Find(num)
	return c.after.IsHeld(num) || c.pubs.Find(num) != nil || h != nil && !h.Ended()
}

// elementsOf returns how the tasks of a job stand that ran at home, or that was cancelled before it was released.
func (c *Core) elementsOf(num uint64) (counts fsm.Counts, read func() gates.Elements, ok bool) {
	if h := c.home.Find(num); h != nil {
		return h.Counts(), func() (e gates.Elements) {
			for i := range h.Tasks {
				e.Add(1, standingIn(h.Tasks[i].State))
			}
			return e
		}, true
	}
	if a := c.after.Find(num); a != nil && !a.Held() {
		counts[fsm.TaskCancelled] = a.Spec.Count
		return counts, func() (e gates.Elements) {
			e.Add(a.Spec.Count, gates.Never)
			return e
		}, true
	}
	return counts, nil, false
}

// standingIn says how a task in a state stands for those that wait for it.
func standingIn(state fsm.TaskState) gates.Standing {
	switch {
	case state == fsm.TaskSucceeded:
		return gates.OK
	case state.Ended():
		return gates.Never
	}
	return gates.Pending
}

// recoverHolds has the jobs at home stand still that a user holds.
func (c *Core) recoverHolds() {
	for _, num := range c.home.Numbers() {
		if c.gates.WasHeld(num) {
			c.home.SetHold(num, true)
		}
	}
}

// recoverGates takes the gated jobs that the journal has, and those of which a user has asked what only gates do.
func (c *Core) recoverGates() {
	for num := range c.after.HeldNumbers() {
		c.gates.Add(&c.after.Find(num).Spec)
	}
	for num := range c.pubs.Numbers() {
		js := &c.pubs.Find(num).Spec
		c.gates.Add(js)
		js.Gated = js.Gated || c.gates.Find(num).Asked()
	}
	for _, num := range c.home.Numbers() {
		if h := c.home.Find(num); !h.Ended() {
			c.gates.Add(&h.Spec)
		}
	}
}

// findGates takes the gated jobs that the state has besides.
func (c *Core) findGates(s StateReader, fx *Effects) {
	for v := range s.OwnJobs(c.site) {
		if v.Spec.Gated && !v.State.Ended() {
			c.gates.Add(&v.Spec)
		}
	}
	c.gates.Recovered(fx)
}

// AdmitGates refuses a gated job while the federation, at an apply version, cannot hold its tasks.
func AdmitGates(js *command.JobSpec, version uint32) error {
	if !js.Gated || version >= command.GatesVersion {
		return nil
	}
	return fmt.Errorf("%w: parallel, retry.backoff, retry.only_on, retry.not_on and after with each need all of the "+
		"federation's brokers to know them, which is version %d, and it is at %d: upgrade the others, or submit without them",
		node.ErrNotReady, command.GatesVersion, version)
}

// checkEach returns why a job's tasks cannot wait for those of another one by one, or nil. Errors are
// *jobspec.SpecError, or wrap node.ErrNotReady while the state may be older than what this site has published.
func (c *Core) checkEach(count uint32, id command.JobID, name string, s StateReader) error {
	js, known := c.own.Spec(id.Num)
	if !known {
		var v fsm.JobView
		v, known = s.Job(id)
		js = v.Spec
	}
	bad := &jobspec.SpecError{Field: "after", Value: strconv.Quote(name)}
	switch {
	case !known && c.incarnation == 0:
		return fmt.Errorf("job %s, whose tasks are to be waited for one by one: %w: this broker has not registered with the "+
			"federation since its start, and may not have seen the job yet: try again when it has", id, node.ErrNotReady)
	case !known:
		bad.Reason = "is no longer kept, and how each of its tasks ended is not known: wait for the whole job, or name one " +
			"that is still listed"
	case js.Count != count:
		bad.Reason = fmt.Sprintf("must have as many tasks as this job if its tasks are waited for one by one (each): it "+
			"has %d, this job %d", js.Count, count)
	default:
		return nil
	}
	return bad
}

// setHold holds a job by hand, or lets it go. Nothing of it that runs is stopped.
func (c *Core) setHold(ev HoldEvent, s StateReader, fx *Effects) {
	id := command.JobID{Site: c.site, Num: ev.Num}
	err := c.checkOpen(ev.Num, s)
	js, here := c.own.Spec(ev.Num)
	if err == nil && !here {
		v, _ := s.Job(id)
		js = v.Spec
	}
	switch {
	case err != nil:
		err = fmt.Errorf("job %s: %w", id, err)
	case js.Gated && c.gates.Find(ev.Num) == nil: // a registration has the book find it
		err = fmt.Errorf("job %s: %w: this broker is not registered with the federation since its start: try again when it is",
			id, node.ErrNotReady)
	case !js.Gated && ev.Hold && s.Version() < command.HoldVersion:
		err = fmt.Errorf("job %s: %w: to hold a job without parallel, retry.backoff, retry.only_on, retry.not_on or after "+
			"with each needs all of the federation's brokers to know it, which is version %d, and it is at %d: upgrade the others",
			id, node.ErrNotReady, command.HoldVersion, s.Version())
	case ev.Hold && isScattered(id, s):
		err = fmt.Errorf("job %s: %w: of its tasks that wait more than %d stretches were cancelled, so it cannot be held: "+
			"cancel the whole job instead, or let it run", id, node.ErrScattered, command.MaxGateHoles)
	default:
		c.gates.SetHold(&js, ev.Hold, fx)
		c.applyAsked(ev.Num)
	}
	fx.Replies = append(fx.Replies, func() { ev.Reply(err) })
}

// checkOpen returns nil if a job of this site has not ended. Errors: node.ErrNotFound, node.ErrEnded, and
// node.ErrNotReady while the state may be older than what this site has published.
func (c *Core) checkOpen(num uint64, s StateReader) error {
	known, ended := c.own.Standing(num)
	if !known {
		var counts fsm.Counts
		counts, known = s.TaskCounts(command.JobID{Site: c.site, Num: num})
		ended = counts.JobState().Ended()
	}
	switch {
	case !known && c.incarnation == 0:
		return fmt.Errorf("%w: this broker has not registered with the federation since its start, and may not have seen "+
			"the job yet: try again when it has", node.ErrNotReady)
	case !known:
		return node.ErrNotFound
	case ended:
		return node.ErrEnded
	}
	return nil
}

// isScattered reports whether the state would not hold a job.
func isScattered(id command.JobID, s StateReader) bool {
	v, _ := s.Gates(id, 0, 1)
	return v.Scattered
}

// applyAsked brings a job that this site still has in line with what its user has asked: at home nothing of it begins
// while it is held, and on its way to the federation it is gated there.
func (c *Core) applyAsked(num uint64) {
	j := c.gates.Find(num)
	switch p := c.pubs.Find(num); {
	case j == nil:
	case c.home.Find(num) != nil:
		c.home.SetHold(num, j.Hold)
	case p != nil && !j.IsGated() && !c.pubs.IsUnderWay(num):
		p.Spec.Gated = j.Asked()
	}
}

// cancelBefore has tasks of a job that waits at this site end once the federation has it, before any of them begins;
// done is false if the job is elsewhere.
func (c *Core) cancelBefore(ev CancelEvent, s StateReader, fx *Effects) (done bool) {
	p := c.pubs.Find(ev.Num)
	if !c.after.IsHeld(ev.Num) && (p == nil || c.pubs.MayBePublished(ev.Num)) {
		return false
	}
	js, _ := c.own.Spec(ev.Num)
	left, err := c.cancelAsked(&js, ev, s, fx)
	if err == nil && left == 0 {
		ev.Tasks = jobspec.Indices{}
		c.cancels.cancel(ev, fx)
		return true
	}
	if err != nil {
		err = fmt.Errorf("cancel tasks of job %s: %w", command.JobID{Site: c.site, Num: ev.Num}, err)
	}
	fx.Replies = append(fx.Replies, func() { ev.Reply(err) })
	return true
}

// cancelAsked notes which tasks of a job are to end, and returns how many are left.
func (c *Core) cancelAsked(js *command.JobSpec, ev CancelEvent, s StateReader, fx *Effects) (left uint32, err error) {
	if s.Version() < command.GatesVersion {
		return 0, fmt.Errorf("%w: before the federation has the job that needs all of its brokers to know gates, which is "+
			"version %d, and it is at %d: upgrade the others, or cancel the whole job", node.ErrNotReady, command.GatesVersion,
			s.Version())
	}
	positions, err := positionsOf(js, ev.Tasks)
	if err != nil {
		return 0, err
	}
	ended, left, err := c.gates.CancelTasks(js, positions, fsm.CancelledAt(cmp.Or(ev.At, c.site)), fx)
	c.applyAsked(js.Num)
	if err == nil && ended == 0 {
		err = node.ErrEnded
	}
	return left, err
}

// Dependencies returns what a job waits for, as a whole or task by task, and the first most of those that wait for it.
func (c *Core) Dependencies(num uint64, most int) node.Dependencies {
	d := c.own.Dependencies(num, most)
	for _, id := range c.gates.EachOf(num) {
		d.On = append(d.On, node.Dependency{Job: id, When: jobspec.WhenEach, State: c.gates.OutcomeOf(id.Num)})
	}
	waiting := c.gates.Awaiting(num)
	d.All += len(waiting)
	for _, n := range waiting[:max(0, min(len(waiting), most-len(d.Waiting)))] {
		d.Waiting = append(d.Waiting, command.JobID{Site: c.site, Num: n})
	}
	for _, of := range []func(uint64, int) ([]uint64, int){c.after.Followers, c.gates.Followers} {
		first, all := of(num, most-len(d.Followed))
		for _, n := range first {
			d.Followed = append(d.Followed, command.JobID{Site: c.site, Num: n})
		}
		d.FollowedAll += all
	}
	return d
}

// Gates returns why tasks of a job are held in the state, "" = none are.
func (c *Core) Gates(num uint64) string { return c.gates.Why(num) }
