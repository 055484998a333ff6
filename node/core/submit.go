package core

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/record"
)

const (
	// publishPatience is how long a client waits for the quorum before it is
	// told that its job is durable at this site only; the job goes on to the
	// federation all the same.
	publishPatience = 5 * time.Second
	// One Submit command holds at most so many jobs and about so many bytes.
	publishJobs  = 1000
	publishBytes = 512 << 10
)

// submit accepts jobs (steps 1 and 2; the paper's event 1).
func (c *Core) submit(ev SubmitEvent, s StateReader, fx *Effects) {
	if c.incarnation != 0 {
		c.reconcile(s, fx) // what the state has assigned here is not free
	}
	c.keys.Advance(c.now.Up)
	for i, req := range ev.Reqs {
		c.submitOne(req, ev.Full, func(a node.Answer) { ev.Reply(i, a) }, s, fx)
	}
	c.keys.Write(&fx.Writes)
}

func (c *Core) submitOne(req node.Request, full error, reply func(node.Answer), s StateReader, fx *Effects) {
	key, done := c.checkKey(req, reply, s, fx)
	if done {
		return
	}
	if full != nil {
		fx.reply(reply, node.Answer{Err: full})
		return
	}
	js := req.Spec.JobSpec(c.nextJob, c.now.Wall.UnixMilli())
	reason := ""
	if ok, why := s.AnyFits(js); !ok {
		if req.Strict {
			fx.reply(reply, node.Answer{Err: fmt.Errorf("%w: %s", node.ErrUnfit, why)})
			return
		}
		reason = why
	}
	places := c.homePlaces(&js, s)
	alone := places == nil && c.Alone() && c.homeAlone(&js)
	if err := c.admit(&js, s); err != nil && places == nil && !alone {
		fx.reply(reply, node.Answer{Err: err})
		return
	}
	c.nextJob++
	fx.Writes = append(fx.Writes, record.Put(record.BucketMeta, record.KeyNextJob, record.Number(c.nextJob)))
	if req.Key != "" {
		c.keys.Add(key, js.Num, keys.Body(req.Meaning[:8]), &fx.Writes)
	}
	id := command.JobID{Site: c.site, Num: js.Num}
	if places != nil {
		c.runHome(js, places, s, fx)
		fx.reply(reply, node.Answer{ID: id, State: fsm.Running.String(), Durability: node.DurableSite})
		return
	}
	if alone {
		c.queueHome(js, fx)
		fx.reply(reply, node.Answer{ID: id, State: fsm.Queued.String(), Reason: AloneReason, Durability: node.DurableSite})
		return
	}
	job := pendingJob{spec: js, reason: reason, key: key, keyed: req.Key != "", reply: reply}
	c.pubs.open = append(c.pubs.open, job)
	c.pubs.openBytes += job.bytes()
}

// admit says why a job cannot go to the federation, or nil. The state decides: what
// it would refuse as it stands is not sent.
func (c *Core) admit(js *command.JobSpec, s StateReader) error {
	if c.incarnation != 0 { // before, the state is as old as the previous run's
		if err := node.RefusedByQuota(s.Admits(c.site, js), c.site, js, s); err != nil {
			return err
		}
	}
	return c.pubs.room(js)
}

// homePlaces applies event 1 of the paper: own capacity is free and no waiting
// task could run on it. A job that is still on its way to the queue waits, too.
func (c *Core) homePlaces(js *command.JobSpec, s StateReader) []string {
	if !c.homeOpen(js) || len(c.home.waiting) > 0 || c.homePaused() {
		return nil
	}
	if !c.Alone() && (!c.pubs.empty() || s.WaitingFits(c.site)) {
		return nil
	}
	return c.place(js)
}

// reply has an answer sent once the writes of this turn are durable.
func (fx *Effects) reply(reply func(node.Answer), a node.Answer) {
	fx.Replies = append(fx.Replies, func() { reply(a) })
}
