package core

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/priorities"
)

// PriorityEvent says that a user gives jobs of this site another priority. Reply is called once for each of them, with
// its place, when what waits of it has the priority, or with why it has not.
type PriorityEvent struct {
	Nums     []uint64
	Priority int32
	Reply    func(i int, err error)
}

func (PriorityEvent) isEvent() {}

// setPriorities changes the priorities of jobs, wherever they wait. What runs goes on.
func (c *Core) setPriorities(ev PriorityEvent, s StateReader, fx *Effects) {
	for i, num := range ev.Nums {
		reply := func(err error) { ev.Reply(i, err) }
		ordered, err := c.setPriority(num, ev.Priority, reply, s, fx)
		if err != nil {
			err = fmt.Errorf("change the priority of job %s: %w", command.JobID{Site: c.site, Num: num}, err)
		}
		if !ordered {
			fx.Replies = append(fx.Replies, func() { reply(err) })
		}
	}
}

// setPriority changes the priority of one job; ordered: the state is to have it, and reply will be told.
func (c *Core) setPriority(
	num uint64, priority int32, reply func(error), s StateReader, fx *Effects,
) (ordered bool, err error) {
	if err = c.checkOpen(num, s); err != nil {
		return false, err
	}
	switch {
	case c.home.Find(num) != nil:
		c.home.SetPriority(num, priority, fx)
		return false, nil
	case c.after.Find(num) != nil:
		c.after.SetPriority(c.after.Find(num), priority, fx)
		return false, nil
	}
	on, way := c.pubs.Find(num), priorities.Published
	if on != nil {
		if way = priorities.Carried; c.pubs.MayBePublished(num) {
			way = priorities.Sent
		}
	}
	if way != priorities.Carried && s.Version() < command.GatesVersion {
		return false, fmt.Errorf("%w: that needs all of the federation's brokers to know it, which is version %d, and it is "+
			"at %d: upgrade the others", node.ErrNotReady, command.GatesVersion, s.Version())
	}
	if on == nil {
		err = c.priorities.Want(num, priority, way, reply, fx)
		return err == nil, err
	}
	if err = c.priorities.Want(num, priority, way, nil, fx); err == nil {
		c.prioritizeOnItsWay(num, priority, way)
	}
	return false, err
}

// prioritizeOnItsWay gives a job that is not in the state yet the priority with which it goes there.
func (c *Core) prioritizeOnItsWay(num uint64, priority int32, way priorities.Way) {
	js := &c.pubs.Find(num).Spec
	was, count := js.Priority, js.Count
	c.pubs.SetPriority(num, priority)
	if way == priorities.Carried && was != priority { // else the state tells it
		c.gates.Tell(fsm.Event{
			Kind: fsm.EventJobPrioritized, Job: command.JobID{Site: c.site, Num: num}, Count: count,
			Reason: fsm.PriorityWords(was, priority),
		})
	}
}

// recoverPriorities gives the jobs on their way the priorities that an earlier run of the broker was asked for.
func (c *Core) recoverPriorities() {
	for num := range c.pubs.Numbers() {
		if priority, ok := c.priorities.Wanted(num); ok {
			c.pubs.SetPriority(num, priority)
		}
	}
}

// Priority says what priority a job is to have that it has not yet, "" if there is none.
func (c *Core) Priority(num uint64) string {
	if priority, ok := c.priorities.Wanted(num); ok && c.pubs.Find(num) == nil {
		return fmt.Sprintf("its priority becomes %d once the federation has ordered that", priority)
	}
	return ""
}
