package core

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/record"
)

// Recover rebuilds the core from the journal and from what the handlers found
// (step 8, from this site's own side). Every attempt with a record is adopted
// if a handler still has it, and lost if not; none is ever started again.
func (c *Core) Recover(j record.Reader, found map[string][]executor.State, fx *Effects) error {
	steps := []func(record.Reader) error{c.recoverNumbers, c.recoverDrain, c.recoverHome, c.recoverPublishing, c.recoverUsage}
	for _, step := range steps {
		if err := step(j); err != nil {
			return err
		}
	}
	if err := c.keys.Recover(j, c.now.Up); err != nil {
		return err
	}
	if err := c.recoverAttempts(j, found, fx); err != nil {
		return err
	}
	c.requeueHome(fx)
	return nil
}

func (c *Core) recoverNumbers(j record.Reader) error {
	v, err := j.Get(record.BucketMeta, record.KeyNextJob)
	if len(v) == 8 {
		c.nextJob = record.DecodeNumber(v)
	}
	return err
}

func (c *Core) recoverHome(j record.Reader) error {
	err := j.Each(record.BucketHome, func(k, v []byte) error {
		job := &homeJob{}
		if err := json.Unmarshal(v, &job.Spec); err != nil {
			return fmt.Errorf("home job %d: %w", record.DecodeNumber(k), err)
		}
		job.Tasks = make([]homeTask, job.Spec.Count)
		c.home.add(record.DecodeNumber(k), job)
		return nil
	})
	if err != nil {
		return err
	}
	err = j.Each(record.BucketTasks, c.recoverTask)
	for _, num := range c.home.order {
		switch job := c.home.jobs[num]; {
		case job.ended():
			c.home.ended = append(c.home.ended, num)
		case !job.isUntouched() && !job.everRan():
			c.home.unsure[num] = true
		}
	}
	return err
}

func (c *Core) recoverTask(k, v []byte) error {
	if len(k) != 12 {
		return fmt.Errorf("home task %x: malformed key", k)
	}
	job := c.home.jobs[record.DecodeNumber(k[:8])]
	task := binary.BigEndian.Uint32(k[8:])
	if job == nil || int(task) >= len(job.Tasks) {
		return fmt.Errorf("home task %x has no job", k)
	}
	if err := json.Unmarshal(v, &job.Tasks[task]); err != nil {
		return fmt.Errorf("home task %x: %w", k, err)
	}
	if state := job.Tasks[task].State; state > fsm.Withdrawn {
		return fmt.Errorf("home task %x: unknown state %d", k, state)
	}
	job.changed(task)
	return nil
}

func (c *Core) recoverPublishing(j record.Reader) error {
	return j.Each(record.BucketPublishing, func(k, v []byte) error {
		cmd, rest, err := command.Decode(slices.Clone(v)) // bbolt's memory must not be kept
		submit, ok := cmd.Body.(*command.Submit)
		if err != nil || !ok || len(rest) > 0 {
			return errors.Join(fmt.Errorf("publication %d is malformed", record.DecodeNumber(k)), err)
		}
		p := &publication{since: c.now.Wall, jobs: make([]pendingJob, len(submit.Jobs))}
		for i := range submit.Jobs {
			p.jobs[i] = pendingJob{spec: submit.Jobs[i], promised: true, recovered: true}
		}
		c.addPublication(p)
		return nil
	})
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
		a := &attempt{}
		if err := json.Unmarshal(v, &a.attemptRecord); err != nil {
			return fmt.Errorf("attempt %s: %w", k, err)
		}
		h, ok := have[a.ID]
		delete(have, a.ID)
		a.handler, a.accepted = h.handler, ok
		c.attempts[a.ID] = a
		c.used.add(a, 1)
		switch {
		case !ok:
			c.handleEnded(a.ID, executor.Result{Cause: executor.Vanished, Detail: "lost with the broker's machine"}, fx)
		case h.state.Ended == nil:
			c.homeHas(a)
			c.markAdopted(a, h.state.Started)
		default:
			c.handleEnded(a.ID, *h.state.Ended, fx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, h := range have { // settled before the restart
		fx.Stops = append(fx.Stops, StopEffect{HandlerID{h.handler, id}, "not in the broker's journal"})
		fx.Forgets = append(fx.Forgets, HandlerID{h.handler, id})
	}
	return nil
}

// markAdopted notes when an adopted attempt began, if its handler knows: the event has
// been told to an earlier life of the broker, or to nobody.
func (c *Core) markAdopted(a *attempt, began time.Time) {
	if began.IsZero() {
		return
	}
	if a.Home {
		if num, t := c.homeTaskOf(a.ID); t != nil && t.Attempt == a.ID.Attempt {
			t.markRunning(began)
			c.home.jobs[num].changed(a.ID.Task)
		}
		return
	}
	c.queueStartReport(a, began)
}

// requeueHome gives home tasks without an attempt another one; those that were
// to be stopped have stopped.
func (c *Core) requeueHome(fx *Effects) {
	live := map[executor.ID]bool{}
	for id := range c.attempts {
		live[executor.ID{Job: id.Job, Task: id.Task, Attempt: id.Attempt}] = true
	}
	queued := map[homeWaiting]bool{}
	for _, w := range c.home.waiting {
		queued[w] = true
	}
	var stopped []uint64 // jobs with such tasks
	for _, num := range c.home.order {
		job := c.home.jobs[num]
		name := command.JobID{Site: c.site, Num: num}.String()
		for i := range job.Tasks {
			t, w := &job.Tasks[i], homeWaiting{num, uint32(i)}
			if t.State.Ended() || queued[w] || live[executor.ID{Job: name, Task: w.task, Attempt: t.Attempt}] {
				continue
			}
			if t.State == fsm.Stopping {
				t.State, t.EndedMs = fsm.TaskCancelled, c.now.Wall.UnixMilli()
				c.writeHome(num, w.task, fx)
				stopped = append(stopped, num)
				continue
			}
			t.State = fsm.Queued
			job.changed(w.task)
			c.home.waiting = append(c.home.waiting, w)
		}
	}
	for _, num := range slices.Compact(stopped) { // only now: it may drop jobs from the order
		c.retireHomeJob(num, fx)
	}
}

// Registration presents a broker: what it still answers for, and what it lost
// track of.
type Registration struct {
	Held, Lost []command.AttemptRef
}

// Registration names this site's attempts for the federation.
func (c *Core) Registration() (held, lost []command.AttemptRef) {
	lostIDs := map[command.AttemptRef]bool{}
	for _, e := range c.ends {
		lostIDs[e.AttemptRef] = e.Outcome == command.Lost
	}
	for id, a := range c.attempts {
		if a.Home {
			continue
		}
		ref, err := c.last.attemptRef(id)
		if err != nil {
			continue // ids of attempts were made from references
		}
		if lostIDs[ref] {
			lost = append(lost, ref)
		} else {
			held = append(held, ref)
		}
	}
	c.namedLost = map[command.AttemptRef]bool{}
	for _, ref := range lost {
		c.namedLost[ref] = true
	}
	slices.SortFunc(held, compareRefs)
	slices.SortFunc(lost, compareRefs)
	return held, lost
}

func compareRefs(a, b command.AttemptRef) int {
	return cmp.Or(cmp.Compare(a.Job.Site, b.Job.Site), cmp.Compare(a.Job.Num, b.Job.Num),
		cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Token, b.Token))
}

// handleRegistered starts the work for the federation.
func (c *Core) handleRegistered(ev RegisteredEvent, fx *Effects) {
	c.incarnation = ev.Result.Incarnation
	fx.Writes = append(fx.Writes, record.RegisteredAs(ev.Boot))
	c.out.beginIncarnation(ev.Result.Incarnation)
	c.seen = 0
	c.nextJob = max(c.nextJob, ev.Result.NextJob)
	c.resumeUsage(ev.Result.NextUsage, fx)
	c.dropSettled(fx)
	c.handBackHeld(fx)
}

// dropSettled drops the attempts that the registration gave up. What was lost
// after it was named as held is reported like any other end.
func (c *Core) dropSettled(fx *Effects) {
	kept := c.ends[:0]
	for _, e := range c.ends {
		a := c.attempts[c.last.attemptID(e.AttemptRef)]
		if a == nil || !c.namedLost[e.AttemptRef] {
			kept = append(kept, e)
			continue
		}
		c.drop(a, fx)
	}
	c.ends = kept
}
