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
	on, err := c.waitsFor(&req, s)
	if err != nil {
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
	if err := AdmitGates(&js, s.Version()); err != nil {
		fx.Reply(reply, node.Answer{Err: err})
		return
	}
	if err := c.quotas.Admit(req.User, claimOf(&js), c.now.Boot); err != nil {
		fx.Reply(reply, node.Answer{Err: err})
		return
	}
	var to way
	held := len(on) > 0 || req.Importing
	if !held {
		to = c.wayOf(&js, req.User, s)
	}
	if err := c.admit(&js, held, len(on), req.User, s); err != nil && to.isPublished() {
		fx.Reply(reply, node.Answer{Err: err})
		return
	}
	c.nextJob++
	fx.Writes = append(fx.Writes, record.Put(record.BucketMeta, record.KeyNextJob, record.Number(c.nextJob)))
	c.whose.Add(js.Num, req.User)
	c.quotas.Spend(req.User, c.now.Boot)
	if req.Key != "" {
		c.keys.Add(key, js.Num, keys.Body(req.Meaning[:8]), &fx.Writes)
	}
	if len(req.Spec.Notify) > 0 {
		fx.Writes = append(fx.Writes, record.PutRecord(record.BucketNotices, record.Number(js.Num),
			node.NewNotices(req.User, req.Spec.Notify)))
	}
	if req.Attached != nil {
		fx.Writes = append(fx.Writes, record.PutRecord(record.BucketAttached, record.Number(js.Num), req.Attached))
	}
	noteLine(&req, js.Num)
	c.gates.Add(&js)
	if held {
		c.hold(js, on, &req, reply, s, fx)
		return
	}
	c.send(publish.Job{
		Spec: js, Reason: reason, Key: key, Keyed: req.Key != "", Reply: reply, User: req.User,
	}, to, s, fx)
}

// noteLine has later lines of the same request find the job that this one is.
func noteLine(req *node.Request, num uint64) {
	if req.Lines != nil {
		req.Lines.Set(req.Line, num)
	}
}

// way is where a job goes: to places of this site at once, to its queue while it is alone, or to the federation.
type way struct {
	places []string
	alone  bool
}

func (w *way) isPublished() bool { return w.places == nil && !w.alone }

func (c *Core) wayOf(js *command.JobSpec, user string, s StateReader) way {
	if js.Gated {
		return way{}
	}
	places := c.homePlaces(js, user, s)
	return way{places: places, alone: places == nil && c.Alone() && c.homeAlone(js)}
}

// send has a job go its way that was accepted.
func (c *Core) send(p publish.Job, to way, s StateReader, fx *Effects) {
	p.Held = to.isPublished() && c.quotas.MustWait(p.User)
	if !p.Held {
		p.Spec.Nice = c.quotas.NiceOf(p.User)
	}
	c.countTaken(&p.Spec, p.User, p.Held)
	a := node.Answer{ID: command.JobID{Site: c.site, Num: p.Spec.Num}, Durability: node.DurableSite}
	switch {
	case to.places != nil:
		c.home.Run(p.Spec, to.places, s.Index(), fx)
		a.State = fsm.Running.String()
	case to.alone:
		c.home.Queue(p.Spec, fx)
		a.State, a.Reason = fsm.Queued.String(), AloneReason
	default:
		c.pubs.Accept(p)
		return
	}
	if p.Reply != nil {
		fx.Reply(p.Reply, a)
	}
}

// admit says why a job cannot go to the federation, or be held for so many others, or nil. The state decides: what
// it would refuse as it stands is not sent.
func (c *Core) admit(js *command.JobSpec, held bool, waitsFor int, user string, s StateReader) error {
	if c.incarnation != 0 { // before, the state is as old as the previous run's
		if err := node.RefusedByQuota(s.Admits(c.site, js), c.site, js, s); err != nil {
			return err
		}
	}
	if held {
		return c.after.Room(js, waitsFor, user)
	}
	return c.pubs.Room(js, user)
}

// homePlaces applies event 1 of the paper: own capacity is free and no waiting
// task could run on it. A job that is still on its way to the queue waits, too; those that are
// held keep only their own user's from starting. While jobs wait for others and numbers are short, nothing begins at
// home: what is published next to another leaves no gap.
func (c *Core) homePlaces(js *command.JobSpec, user string, s StateReader) []string {
	if !js.Allows(c.site) || c.home.Waiting() > 0 || c.homePaused() || c.after.Held() > 0 && c.numbersShort(s) {
		return nil
	}
	if !c.Alone() && (!c.pubs.Idle() || c.quotas.Holds(user) || s.WaitingFits(c.site)) {
		return nil
	}
	return c.machines.Place(js)
}
