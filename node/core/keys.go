package core

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

// Idempotency keys are held by package keys; here they decide requests.

// checkKey answers a request whose idempotency key decides it: a repeat gets
// the original id, another body under the same key an error.
func (c *Core) checkKey(
	req node.Request, reply func(node.Answer), s StateReader, fx *Effects,
) (name keys.Name, done bool) {
	if req.Key == "" {
		return name, false
	}
	name = keys.NameOf(keys.OfUser(req.User, req.Key), req.Line)
	job, body, held := c.keys.Find(name)
	if !held {
		err := c.keys.Full(name)
		if err != nil {
			fx.Reply(reply, node.Answer{Err: err})
		}
		return name, err != nil
	}
	if body != keys.Body(req.Meaning[:8]) {
		fx.Reply(reply, node.Answer{Err: fmt.Errorf("%w: it stands for job %s.%d", node.ErrKeyReused, c.site, job)})
	} else {
		noteLine(&req, job)
		c.replay(job, reply, s, fx)
	}
	return name, true
}

// replay answers a repeat of a keyed request. Once the site is registered its state is as
// new as the keys, so a job that the state does not know has ended.
func (c *Core) replay(num uint64, reply func(node.Answer), s StateReader, fx *Effects) {
	if p := c.pubs.Find(num); (p == nil || !p.Held) && c.pubs.AddRepeat(num, reply) {
		return
	}
	a := node.Answer{ID: command.JobID{Site: c.site, Num: num}, Durability: node.DurableFederation, Replayed: true}
	job, held := c.home.Find(num), c.after.Find(num)
	v, published := s.Job(a.ID)
	switch {
	case c.pubs.Find(num) != nil:
		a.Durability, a.State, a.Reason = node.DurableSite, fsm.Queued.String(), publish.Held
	case held != nil:
		a.Durability, a.State, a.Reason = node.DurableSite, held.State().String(), c.after.WaitsFor(held)
	case job != nil:
		a.Durability, a.State = node.DurableSite, job.State().String()
	case published:
		a.State, a.Reason = v.State.String(), v.Reason
	case c.incarnation == 0:
		a.State, a.Reason = fsm.Queued.String(), "accepted before; its state is known here once this broker is registered"
	default: // whether the federation ever had it is not known, either
		a.Durability, a.State, a.Reason = node.DurableSite, node.Retired, "it has ended and is no longer kept"
	}
	fx.Reply(reply, a)
}
