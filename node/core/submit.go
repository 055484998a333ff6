package core

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/record"
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
	c.whose.Write(&fx.Writes)
}

func (c *Core) submitOne(req node.Request, full error, reply func(node.Answer), s StateReader, fx *Effects) {
	key, done := c.checkKey(req, reply, s, fx)
	if done {
		return
	}
	if err := cmp.Or(full, req.Refused); err != nil {
		fx.Reply(reply, node.Answer{Err: err})
		return
	}
	js := req.Spec.JobSpec(c.site, c.nextJob, c.now.Wall.UnixMilli(), c.sealer)
	reason := ""
	if ok, why := s.AnyFits(js); !ok {
		if req.Strict {
			fx.Reply(reply, node.Answer{Err: fmt.Errorf("%w: %s", node.ErrUnfit, why)})
			return
		}
		reason = why
	}
	if err := c.quotas.Admit(req.User, claimOf(&js), c.now.Boot); err != nil {
		fx.Reply(reply, node.Answer{Err: err})
		return
	}
	places := c.homePlaces(&js, req.User, s)
	alone := places == nil && c.Alone() && c.homeAlone(&js)
	if err := c.admit(&js, req.User, s); err != nil && places == nil && !alone {
		fx.Reply(reply, node.Answer{Err: err})
		return
	}
	c.nextJob++
	fx.Writes = append(fx.Writes, record.Put(record.BucketMeta, record.KeyNextJob, record.Number(c.nextJob)))
	c.whose.Add(js.Num, req.User)
	c.quotas.Spend(req.User, c.now.Boot)
	held := places == nil && !alone && c.quotas.MustWait(req.User)
	if !held {
		js.Nice = c.quotas.NiceOf(req.User)
	}
	c.countTaken(&js, req.User, held)
	if req.Key != "" {
		c.keys.Add(key, js.Num, keys.Body(req.Meaning[:8]), &fx.Writes)
	}
	if len(req.Spec.Notify) > 0 {
		fx.Writes = append(fx.Writes, record.PutRecord(record.BucketNotices, record.Number(js.Num),
			node.NewNotices(req.User, req.Spec.Notify)))
	}
	id := command.JobID{Site: c.site, Num: js.Num}
	if places != nil {
		c.home.Run(js, places, s.Index(), fx)
		fx.Reply(reply, node.Answer{ID: id, State: fsm.Running.String(), Durability: node.DurableSite})
		return
	}
	if alone {
		c.home.Queue(js, fx)
		fx.Reply(reply, node.Answer{
			ID: id, State: fsm.Queued.String(), Reason: AloneReason,
			Durability: node.DurableSite,
		})
		return
	}
	c.pubs.Accept(publish.Job{
		Spec: js, Reason: reason, Key: key, Keyed: req.Key != "", Reply: reply, User: req.User, Held: held,
	})
}

// admit says why a job cannot go to the federation, or nil. The state decides: what
// it would refuse as it stands is not sent.
func (c *Core) admit(js *command.JobSpec, user string, s StateReader) error {
	if c.incarnation != 0 { // before, the state is as old as the previous run's
		if err := node.RefusedByQuota(s.Admits(c.site, js), c.site, js, s); err != nil {
			return err
		}
	}
	return c.pubs.Room(js, user)
}

// homePlaces applies event 1 of the paper: own capacity is free and no waiting
// task could run on it. A job that is still on its way to the queue waits, too; those that are
// held keep only their own user's from starting.
func (c *Core) homePlaces(js *command.JobSpec, user string, s StateReader) []string {
	if !js.Allows(c.site) || c.home.Waiting() > 0 || c.homePaused() {
		return nil
	}
	if !c.Alone() && (!c.pubs.Idle() || c.quotas.Holds(user) || s.WaitingFits(c.site)) {
		return nil
	}
	return c.machines.Place(js)
}
