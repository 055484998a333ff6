package core

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/record"
)

// Drain is a site's wish to run nothing for others, and, with Own, nothing for
// itself either. What runs already goes on. It survives restarts.
type Drain struct {
	On  bool `json:"on"`
	Own bool `json:"own"`
}

var keyDrain = []byte("drain")

// homePaused reports whether nothing is started at home now: the operator wants
// it so, the site leaves, it is in trouble, or too many runs wait for their report.
func (c *Core) homePaused() bool {
	return c.drain.Own || c.closing || c.full != nil || c.usage.full()
}

// setDrain changes what the site takes on.
func (c *Core) setDrain(d Drain, fx *Effects) {
	c.drain = d
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketMeta, keyDrain, d))
}

// recoverDrain reads the site's wish of an earlier life.
func (c *Core) recoverDrain(j record.Reader) error {
	v, err := j.Get(record.BucketMeta, keyDrain)
	if err != nil || len(v) == 0 {
		return err
	}
	if err := json.Unmarshal(v, &c.drain); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// DrainEvent says that the operator drains or resumes the site; done is called once it
// is durable.
type DrainEvent struct {
	Drain
	Done func()
}

func (DrainEvent) isEvent() {}

// Draining tells what the site takes on: nothing for others (on), nothing for its own
// users either (own).
func (c *Core) Draining() (on, own bool) { return c.drain.On, c.drain.Own }

// Close has the site offer nothing any more.
func (c *Core) Close() { c.closing = true }

// HandBackAll has the site offer nothing any more and hand back what ends.
func (c *Core) HandBackAll() { c.closing, c.handingBack, c.seen = true, true, 0 }

// Withdrawn reports whether the order has taken the last offer, of nothing.
func (c *Core) Withdrawn() bool { return len(c.offers.last) == 0 && !c.offers.inflight }

// Idle reports whether nothing runs here.
func (c *Core) Idle() bool { return len(c.attempts) == 0 }

// ProposeDeparture has the last command of a site that leaves ordered, and passes its code on.
func (c *Core) ProposeDeparture(body command.Body, done chan<- command.Code) {
	c.gone = true // when the state says so, it is no reason to come back
	c.out.add(body, func(r command.Result, _ StateReader, _ *Effects) { done <- r.Code })
}
