package attempts

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// inputBlobs returns the blobs that inputs name.
func inputBlobs(inputs []jobspec.Input) (blobs []InputBlob) {
	for i := range inputs {
		if in := &inputs[i]; in.From != jobspec.FromContent {
			blobs = append(blobs, InputBlob{Blob: in.Blob, From: in.From})
		}
	}
	return blobs
}

// IsStaged reports whether files of a task are fetched before it is started: another site has them.
func (b *Book) IsStaged(st *turn.StartEffect) bool {
	return st.Task.Owner != b.site && len(inputBlobs(st.Inputs)) > 0
}

// Prepare notes that the shell prepares the start of an attempt with files, and hears from now on that it is to end.
func (b *Book) Prepare(a *Attempt, fx *turn.Effects) {
	a.preparing = true
	if a.due && !a.Accepted {
		b.stopEarly(a, fx)
	}
}

func (b *Book) stopEarly(a *Attempt, fx *turn.Effects) {
	fx.Stops = append(fx.Stops, turn.StopEffect{
		HandlerID: turn.HandlerID{Handler: a.Handler, ID: a.ID}, Why: a.dueWhy, Early: true,
	})
}

// Due returns whether, and why, an attempt is to end that its handler does not have yet.
func (a *Attempt) Due() (due bool, why string) { return a.due, a.dueWhy }

// Held returns what is to be started of a staged attempt.
func (a *Attempt) Held() *turn.StartEffect { return a.held }

// Begin has a staged attempt's handler start it, after the sync of a record that says so.
func (b *Book) Begin(a *Attempt, fx *turn.Effects) {
	st := *a.held
	st.Stage = false
	a.held, a.Staged, a.Staging, a.preparing = nil, false, false, false
	a.StagedMs = max(b.StagingTime(a).Milliseconds(), 1)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketAttempts, a.recordKey(), a.Record))
	fx.Starts = append(fx.Starts, st)
}

// StagingTime returns how long ago an attempt of this life of the broker was recorded.
func (b *Book) StagingTime(a *Attempt) time.Duration { return time.Duration(b.now.Boot - a.Begun) }

// Charge counts the time in which its files were fetched into a run: its machine was kept for it.
func (a *Attempt) Charge(r *executor.Result) {
	if staged := time.Duration(a.StagedMs) * time.Millisecond; staged > 0 && !r.Started.IsZero() {
		r.Started, r.Run = r.Started.Add(-staged), r.Run+staged
	}
}

// Measured returns what an ended attempt has used.
func (a *Attempt) Measured(u executor.Usage) command.Measured {
	m := MeasuredOf(u)
	m.InBytes, m.OutBytes = min(a.InBytes, command.MaxTransfer), a.Output.Bytes
	return m
}

// Collects reports whether outputs of an attempt that ended so are to be kept: nobody runs its task again.
func (a *Attempt) Collects(r *executor.Result) bool {
	return !a.Fenced && a.Outputs.Kept(*r) && (r.Cause != executor.Stopped || a.Stopping)
}
