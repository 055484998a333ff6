package broker

import (
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// load finds out which files are to stay, once the state is as new as the federation's; false: the broker ends before.
func (k *ownFiles) load() bool {
	broken, err := k.results.Load(k.ctx)
	if err != nil {
		return false
	}
	if broken > 0 {
		k.log.Warn().Int("results", broken).
			Msg("results of tasks are not whole any more: their files were damaged or removed; the others are not touched")
	}
	select {
	case <-k.b.registrar.current:
	case <-k.ctx.Done():
		return false
	}
	if err := k.recallAll(); err != nil {
		return false
	}
	k.store.PinsSaid()
	close(k.loaded)
	return true
}

// recallAll has the inputs of all jobs of this site stay that have not ended. A job that is published meanwhile is
// found in the state, which is read last.
func (k *ownFiles) recallAll() error {
	for below := uint64(0); ; {
		var got []own.Record
		var rest uint64
		err := k.query(k.ctx, func(c *core.Core) { got, rest = c.Own().Records(below, "", own.Steps) })
		if err != nil {
			return err
		}
		for i := range got {
			k.recall(got[i].Spec)
		}
		if below = rest; rest == 0 {
			break
		}
	}
	for before := uint64(0); ; {
		var views []fsm.JobView
		k.b.cfg.Replica.View(func(s *fsm.State) {
			views, before = s.Jobs(fsm.JobFilter{Owner: k.b.cfg.Site}, before, secretsLook)
		})
		for i := range views {
			if !views[i].State.Ended() {
				k.recall(views[i].Spec)
			}
		}
		if before == 0 {
			return nil
		}
	}
}

// recall has the inputs of a job stay.
func (k *ownFiles) recall(js command.JobSpec) {
	if !slices.ContainsFunc(js.Selectors, command.IsFilesSelector) {
		return
	}
	spec, err := jobspec.SpecOf(js, k.sealer)
	if err == nil {
		err = k.inputs.Recall(js.Num, k.b.UserOf(js.Num), spec.Inputs)
	}
	if err != nil {
		k.log.Warn().Err(err).Uint64("job", js.Num).Msg("a job's files are not all here: its tasks are declined where they begin")
	}
}

const (
	// sweepEvery is how often it is looked what has ended.
	sweepEvery = time.Minute
	// sweepLook bounds the jobs that are looked up at a time.
	sweepLook = 1000
)

// sweepLoop lets go what is not needed any more, until the broker ends.
func (k *ownFiles) sweepLoop() {
	for {
		select {
		case <-time.After(sweepEvery):
		case <-k.ctx.Done():
			return
		}
		if err := k.sweep(); err != nil && k.ctx.Err() == nil {
			k.log.Warn().Err(err).Msg("files of jobs that have ended are kept: trying again within a minute")
		}
	}
}

// sweep lets go the inputs of jobs that have ended, and results whose time is over.
func (k *ownFiles) sweep() error {
	if k.b.Current() != nil {
		return nil
	}
	for nums := range slices.Chunk(k.inputs.Jobs(), sweepLook) {
		ended, err := k.b.endedOf(nums)
		if err != nil {
			return err
		}
		for _, num := range ended {
			k.inputs.Release(num)
		}
	}
	for nums := range slices.Chunk(k.results.Unended(), sweepLook) {
		ended, err := k.b.endedOf(nums)
		if err != nil {
			return err
		}
		for _, num := range ended {
			if err := k.results.End(num, k.shapeOf(num), k.counting(num)); err != nil {
				return err
			}
		}
	}
	for _, num := range k.results.Ended(time.Now().Add(-k.b.cfg.Data.KeepResults)) {
		if err := k.results.Drop(num); err != nil {
			return err
		}
	}
	return k.collect()
}

// collect removes what is due.
func (k *ownFiles) collect() error {
	for more := true; more && k.ctx.Err() == nil; {
		var err error
		if _, more, err = k.store.Collect(); err != nil {
			return fmt.Errorf("remove files that nobody needs: %w", err)
		}
	}
	return nil
}

// shapeOf returns the shape of a job that has just ended, zero if nobody knows it any more.
func (k *ownFiles) shapeOf(num uint64) results.Shape {
	job, err := k.b.Job(k.ctx, command.JobID{Site: k.b.cfg.Site, Num: num})
	if err != nil {
		return results.Shape{}
	}
	return results.Shape{Count: job.Spec.Count, Indices: job.Spec.Indices.String()}
}

// counting says which attempts of a job's tasks count, 0 where nobody knows any more.
func (k *ownFiles) counting(num uint64) func(task uint32) (attempt uint32) {
	counts, id := map[uint32]uint32{}, command.JobID{Site: k.b.cfg.Site, Num: num}
	for from := uint32(0); ; {
		tasks, next, err := k.b.Tasks(k.ctx, id, from, sweepLook)
		for i := range tasks {
			counts[tasks[i].Position] = tasks[i].Attempt
		}
		if from = next; err != nil || next == 0 {
			return func(task uint32) uint32 { return counts[task] }
		}
	}
}
