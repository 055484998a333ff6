package after

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// jobRecord is what the journal holds of a job.
type jobRecord struct {
	Spec    command.JobSpec `json:"spec"`
	After   []Dep           `json:"after"`
	EndedMs int64           `json:"ended_ms,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Inputs  Inputs          `json:"inputs,omitempty"`
}

// write has a job recorded.
func (b *Book) write(j *Job, fx *turn.Effects) {
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketHeld, record.Number(j.Spec.Num),
		jobRecord{j.Spec, j.On, j.EndedMs, j.Reason, j.Inputs}))
}

// Recover reads the jobs and outcomes of earlier runs of the broker; userOf says whose a job is.
func (b *Book) Recover(j record.Reader, userOf func(num uint64) string, fx *turn.Effects) error {
	err := j.Each(record.BucketHeld, func(k, v []byte) error { return b.recoverJob(record.DecodeNumber(k), v, userOf) })
	if err != nil {
		return err
	}
	err = j.Each(record.BucketOutcomes, func(k, v []byte) error {
		num, outcome := record.DecodeNumber(k), string(v)
		if state, _ := fsm.ParseTaskState(outcome); !state.Ended() && outcome != node.OutcomeUnknown {
			return fmt.Errorf("outcome of job %d: unknown state %q", num, outcome)
		}
		if t := b.targets[num]; t != nil {
			b.dropLook(t)
			t.outcome, t.waiting = outcome, nil
			return nil
		}
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketOutcomes, record.Number(num)))
		return nil
	})
	slices.SortStableFunc(b.ended, func(x, y uint64) int { return cmp.Compare(b.jobs[x].EndedMs, b.jobs[y].EndedMs) })
	for num := range b.held.All() {
		b.judge(b.jobs[num])
		for _, d := range b.jobs[num].On {
			if b.Outcome(d.Num) != "" {
				b.past.Add(d.Num, num)
			}
		}
	}
	return err
}

func (b *Book) recoverJob(num uint64, v []byte, userOf func(num uint64) string) error {
	var r jobRecord
	if err := json.Unmarshal(v, &r); err != nil {
		return fmt.Errorf("held job %d: %w", num, err)
	}
	for _, d := range r.After {
		if d.Num >= num || d.When > jobspec.WhenNotOK {
			return fmt.Errorf("held job %d: it waits for job %d, condition %d: malformed", num, d.Num, d.When)
		}
	}
	known := r.Inputs == "" || r.Inputs == InputsAwaited || r.Inputs == InputsBrought ||
		r.Inputs == InputsFailed && r.EndedMs != 0
	if r.Spec.Num != num || len(r.After) == 0 && r.Inputs == "" || !known {
		return fmt.Errorf("held job %d: malformed", num)
	}
	b.add(&Job{Spec: r.Spec, User: userOf(num), On: r.After, EndedMs: r.EndedMs, Reason: r.Reason, Inputs: r.Inputs})
	return nil
}

// Check returns an error if lists, counts and outcomes of the book are not those of its jobs. Tests ask after every
// turn.
func (b *Book) Check() error {
	if got, want := slices.Collect(b.nums.All()), slices.Sorted(maps.Keys(b.jobs)); !slices.Equal(got, want) {
		return fmt.Errorf("jobs are %v, listed are %v", want, got)
	}
	var all amount
	refs, queued := map[uint64]int{}, b.queued()
	for num, j := range b.jobs {
		if !j.Held() {
			continue
		}
		all = all.Plus(amountOf(j), 1)
		left, vain := 0, false
		if j.Inputs == InputsAwaited {
			left++
		}
		for _, d := range j.On {
			refs[d.Num]++
			t := b.targets[d.Num]
			if t == nil || t.outcome == "" && !slices.Contains(t.waiting, num) {
				return fmt.Errorf("job %d waits for job %d, which does not know that", num, d.Num)
			}
			if t.outcome == "" {
				left++
			} else {
				vain = vain || !Allows(d.When, t.outcome)
			}
		}
		if (left == 0 || vain) != (queued[num] == 1) || !vain && left != j.left || queued[num] > 1 {
			return fmt.Errorf("job %d waits for %d, in vain: %t; counted are %d, queued is it %d times", num, left, vain, j.left, queued[num])
		}
	}
	if all != b.amounts.Sum() || b.held.Len() != all.jobs {
		return fmt.Errorf("held are %+v, counted are %+v, listed %d", all, b.amounts.Sum(), b.held.Len())
	}
	return b.checkTargets(refs)
}

// queued returns how often each held job is among those that are to be released or ended.
func (b *Book) queued() map[uint64]int {
	n := map[uint64]int{}
	for _, num := range b.due {
		n[num]++
	}
	for _, v := range b.inVain {
		n[v.num]++
	}
	return n
}

func (b *Book) checkTargets(refs map[uint64]int) error {
	if len(refs) != len(b.targets) {
		return fmt.Errorf("%d jobs are waited for, %d are known", len(refs), len(b.targets))
	}
	for num, t := range b.targets {
		if t.refs != refs[num] {
			return fmt.Errorf("%d jobs wait for job %d, counted are %d", refs[num], num, t.refs)
		}
		looked := t.outcome == "" && !b.IsHeld(num)
		if looked != (t.at >= 0) || looked && b.looks[t.at] != t {
			return fmt.Errorf("job %d is looked for: %t, at %d", num, looked, t.at)
		}
	}
	return nil
}
