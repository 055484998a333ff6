package core

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/gates"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Jobs whose tasks are released one by one: package gates decides when. They never run at home, but all go to the
// federation: one place holds their tasks, and it is not lost with this site's disk.

// HoldEvent says that a user holds a gated job by hand, or lets it go.
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
		Pending: func(num uint64) bool { return c.after.IsHeld(num) || c.pubs.Find(num) != nil },
		Own:     c.elementsOf,
	})
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

// recoverGates takes the gated jobs that the journal has.
func (c *Core) recoverGates() {
	for num := range c.after.HeldNumbers() {
		c.gates.Add(&c.after.Find(num).Spec)
	}
	for num := range c.pubs.Numbers() {
		c.gates.Add(&c.pubs.Find(num).Spec)
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

// checkEach says why a job's tasks cannot wait for those of another one by one, "" if they can.
func (c *Core) checkEach(count uint32, id command.JobID, s StateReader) (why string) {
	js, known := c.own.Spec(id.Num)
	if !known {
		v, _ := s.Job(id)
		js = v.Spec
	}
	if js.Count == count {
		return ""
	}
	return fmt.Sprintf("must have as many tasks as this job if its tasks are waited for one by one (each): it has %d, this job %d",
		js.Count, count)
}

// setHold holds a job by hand, or lets it go. Nothing of it that runs is stopped.
func (c *Core) setHold(ev HoldEvent, s StateReader, fx *Effects) {
	id := command.JobID{Site: c.site, Num: ev.Num}
	known, ended := c.own.Standing(ev.Num)
	js, _ := c.own.Spec(ev.Num)
	gated := js.Gated
	if !known {
		v, inState := s.Job(id)
		known, ended, gated = inState, v.State.Ended(), v.Spec.Gated
	}
	var err error
	switch {
	case !known && c.incarnation == 0: // the state may be older than what this site has published
		err = fmt.Errorf("job %s: %w: this broker has not registered with the federation since its start, and may not have seen it yet: try again when it has",
			id, node.ErrNotReady)
	case !known:
		err = fmt.Errorf("job %s: %w", id, node.ErrNotFound)
	case ended:
		err = fmt.Errorf("job %s: %w", id, node.ErrEnded)
	case gated && c.gates.Find(ev.Num) == nil: // a registration has the book find it
		err = fmt.Errorf("job %s: %w: this broker is not registered with the federation since its start: try again when it is",
			id, node.ErrNotReady)
	default:
		err = c.gates.SetHold(ev.Num, ev.Hold, fx)
	}
	fx.Replies = append(fx.Replies, func() { ev.Reply(err) })
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
	return d
}

// Gates returns why tasks of a job are held in the state, "" = none are.
func (c *Core) Gates(num uint64) string { return c.gates.Why(num) }
