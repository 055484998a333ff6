package node

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
)

// recover rebuilds the core from the journal and from what the handlers found
// (step 8, from this site's own side). Every attempt with a record is adopted
// if a handler still has it, and lost if not; none is ever started again.
func (c *core) recover(j *Journal, found map[string][]executor.State, fx *effects) error {
	steps := []func(*Journal) error{c.recoverNumbers, c.recoverDrain, c.recoverHome, c.recoverPublishing, c.recoverUsage}
	for _, step := range steps {
		if err := step(j); err != nil {
			return err
		}
	}
	if err := c.recoverKeys(j, fx); err != nil {
		return err
	}
	if err := c.recoverAttempts(j, found, fx); err != nil {
		return err
	}
	c.requeueHome(fx)
	return nil
}

func (c *core) recoverNumbers(j *Journal) error {
	if v := j.get(bucketMeta, keyNextJob); len(v) == 8 {
		c.nextJob = decodeNumber(v)
	}
	return nil
}

func (c *core) recoverHome(j *Journal) error {
	err := j.each(bucketHome, func(k, v []byte) error {
		job := &homeJob{}
		if err := json.Unmarshal(v, &job.Spec); err != nil {
			return fmt.Errorf("home job %d: %w", decodeNumber(k), err)
		}
		job.Tasks = make([]homeTask, job.Spec.Count)
		c.home.add(decodeNumber(k), job)
		return nil
	})
	if err != nil {
		return err
	}
	err = j.each(bucketTasks, c.recoverTask)
	for _, num := range c.home.order {
		switch job := c.home.jobs[num]; {
		case job.ended():
			c.home.ended = append(c.home.ended, num)
		case !job.untouched() && !job.everRan():
			c.home.unsure[num] = true
		}
	}
	return err
}

func (c *core) recoverTask(k, v []byte) error {
	if len(k) != 12 {
		return fmt.Errorf("home task %x: malformed key", k)
	}
	job := c.home.jobs[decodeNumber(k[:8])]
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

func (c *core) recoverPublishing(j *Journal) error {
	return j.each(bucketPublishing, func(k, v []byte) error {
		cmd, rest, err := fsm.DecodeCommand(slices.Clone(v)) // bbolt's memory must not be kept
		submit, ok := cmd.Body.(*fsm.Submit)
		if err != nil || !ok || len(rest) > 0 {
			return errors.Join(fmt.Errorf("publication %d is malformed", decodeNumber(k)), err)
		}
		p := &publication{since: c.now.wall, jobs: make([]pendingJob, len(submit.Jobs))}
		for i := range submit.Jobs {
			p.jobs[i] = pendingJob{spec: submit.Jobs[i], promised: true, recovered: true}
		}
		c.addPublication(p)
		return nil
	})
}

// recoverAttempts matches the records with what the handlers found.
func (c *core) recoverAttempts(j *Journal, found map[string][]executor.State, fx *effects) error {
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
	err := j.each(bucketAttempts, func(k, v []byte) error {
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
			c.hasEnded(a.ID, executor.Result{Cause: executor.Vanished, Detail: "lost with the broker's machine"}, fx)
		case h.state.Ended == nil:
			c.homeHas(a)
			c.goesOn(a, h.state.Started)
		default:
			c.hasEnded(a.ID, *h.state.Ended, fx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, h := range have { // settled before the restart
		fx.stops = append(fx.stops, stopEffect{handlerID{h.handler, id}, "not in the broker's journal"})
		fx.forgets = append(fx.forgets, handlerID{h.handler, id})
	}
	return nil
}

// goesOn notes when an adopted attempt began, if its handler knows: the event has
// been told to an earlier life of the broker, or to nobody.
func (c *core) goesOn(a *attempt, began time.Time) {
	if began.IsZero() {
		return
	}
	if a.Home {
		if num, t := c.homeTaskOf(a.ID); t != nil && t.Attempt == a.ID.Attempt {
			t.begin(began)
			c.home.jobs[num].changed(a.ID.Task)
		}
		return
	}
	c.noteStarted(a, began)
}

// requeueHome gives home tasks without an attempt another one; those that were
// to be stopped have stopped.
func (c *core) requeueHome(fx *effects) {
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
		name := fsm.JobID{Site: c.site, Num: num}.String()
		for i := range job.Tasks {
			t, w := &job.Tasks[i], homeWaiting{num, uint32(i)}
			if isEnd(t.State) || queued[w] || live[executor.ID{Job: name, Task: w.task, Attempt: t.Attempt}] {
				continue
			}
			if t.State == fsm.Stopping {
				t.State, t.EndedMs = fsm.TaskCancelled, c.now.wall.UnixMilli()
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
		c.homeRetire(num, fx)
	}
}

// registration presents a broker: what it still answers for, and what it lost
// track of.
type registration struct {
	held, lost []fsm.AttemptRef
}

// registration names this site's attempts for the federation.
func (c *core) registration() (held, lost []fsm.AttemptRef) {
	lostIDs := map[fsm.AttemptRef]bool{}
	for _, e := range c.ends {
		lostIDs[e.AttemptRef] = e.Outcome == fsm.Lost
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
	c.namedLost = map[fsm.AttemptRef]bool{}
	for _, ref := range lost {
		c.namedLost[ref] = true
	}
	slices.SortFunc(held, compareRefs)
	slices.SortFunc(lost, compareRefs)
	return held, lost
}

func compareRefs(a, b fsm.AttemptRef) int {
	return cmp.Or(cmp.Compare(a.Job.Site, b.Job.Site), cmp.Compare(a.Job.Num, b.Job.Num),
		cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Token, b.Token))
}

// registered starts the work for the federation.
func (c *core) registered(ev registeredEvent, fx *effects) {
	c.incarnation = ev.result.Incarnation
	fx.writes = append(fx.writes, registeredAs(ev.boot))
	c.out.begin(ev.result.Incarnation)
	c.seen = 0
	c.nextJob = max(c.nextJob, ev.result.NextJob)
	c.resumeUsage(ev.result.NextUsage, fx)
	c.dropSettled(fx)
}

// dropSettled drops the attempts that the registration gave up. What was lost
// after it was named as held is reported like any other end.
func (c *core) dropSettled(fx *effects) {
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

func decodeNumber(k []byte) uint64 {
	if len(k) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}
