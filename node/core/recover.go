package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/record"
)

// Recover rebuilds the core from the journal and from what the handlers found
// (step 8, from this site's own side). Every attempt with a record is adopted
// if a handler still has it, and lost if not; none is ever started again. What was only staging is forgotten.
func (c *Core) Recover(j record.Reader, found map[string][]executor.State, fx *Effects) error {
	steps := []func(record.Reader) error{
		c.recoverNumbers, c.lend.Recover, c.home.Recover, c.pubs.Recover,
		c.usage.Recover, c.whose.Recover, c.quotas.Recover,
		c.gates.Recover, c.priorities.Recover,
		func(j record.Reader) error { return c.after.Recover(j, c.whose.UserOf, fx) },
	}
	for _, step := range steps {
		if err := step(j); err != nil {
			return err
		}
	}
	if err := c.keys.Recover(j, c.now.Up); err != nil {
		return err
	}
	c.recoverHolds()
	if err := c.recoverAttempts(j, found, fx); err != nil {
		return err
	}
	c.recoverPriorities()
	c.home.Requeue(fx)
	c.countJournaled()
	c.recoverGates()
	return nil
}

func (c *Core) recoverNumbers(j record.Reader) error {
	v, err := j.Get(record.BucketMeta, record.KeyNextJob)
	if len(v) == 8 {
		c.nextJob = record.DecodeNumber(v)
	}
	return err
}

// recoverAttempts matches the records with what the handlers found.
func (c *Core) recoverAttempts(j record.Reader, found map[string][]executor.State, fx *Effects) error {
	type held struct {
		handler string
		state   executor.State
	}
	have := map[executor.ID]held{}
	for handler, states := range found {
		for _, st := range states {
			have[st.ID] = held{handler, st}
		}
	}
	err := j.Each(record.BucketAttempts, func(k, v []byte) error {
		var rec attempts.Record
		if err := json.Unmarshal(v, &rec); err != nil {
			return fmt.Errorf("attempt %s: %w", k, err)
		}
		h, ok := have[rec.ID]
		delete(have, rec.ID)
		if rec.Staging && !ok { // nothing was started: no registration names it, so it goes back without a loss
			fx.Writes = append(fx.Writes, record.Remove(record.BucketAttempts, slices.Clone(k)))
			return nil
		}
		a := c.attempts.Adopt(rec, h.handler, ok)
		switch {
		case !ok:
			c.handleEnded(a.ID, executor.Result{Cause: executor.Vanished, Detail: "lost with the broker's machine"}, fx)
		case h.state.Ended == nil:
			c.home.Has(a)
			c.markAdopted(a, h.state.Started)
		default:
			c.handleEnded(a.ID, *h.state.Ended, fx)
			if a.Collecting { // until that is over it runs, as it did before the restart
				c.markAdopted(a, h.state.Ended.Started)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, h := range have { // settled before the restart
		fx.Stops = append(fx.Stops, StopEffect{HandlerID: HandlerID{Handler: h.handler, ID: id}, Why: "not in the broker's journal"})
		fx.Forgets = append(fx.Forgets, HandlerID{Handler: h.handler, ID: id})
	}
	return nil
}

// markAdopted notes when an adopted attempt began, if its handler knows: the event has
// been told to an earlier life of the broker, or to nobody.
func (c *Core) markAdopted(a *attempts.Attempt, began time.Time) {
	if began.IsZero() {
		return
	}
	if a.Home {
		c.home.MarkAdopted(a, began)
		return
	}
	c.reports.QueueStarted(a, began)
}

// Registration names this site's attempts for the federation.
func (c *Core) Registration() (held, lost []command.AttemptRef) { return c.reports.Registration() }

// handleRegistered starts the work for the federation.
func (c *Core) handleRegistered(ev RegisteredEvent, fx *Effects) {
	c.incarnation = ev.Result.Incarnation
	fx.Writes = append(fx.Writes, record.RegisteredAs(ev.Boot))
	c.out.BeginIncarnation(ev.Result.Incarnation)
	c.ahead.Clear()
	c.seen = 0
	c.nextJob = max(c.nextJob, ev.Result.NextJob)
	c.usage.Resume(ev.Result.NextUsage, fx)
	c.reports.DropNamedLost(fx)
	c.handBackHeld(fx)
}
