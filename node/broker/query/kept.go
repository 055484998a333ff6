package query

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// KeptOutputs returns what this site knows of the output of tasks of a job, whatever the
// state says; tasks of which it knows nothing are left out.
func (rd *Reader) KeptOutputs(job command.JobID, positions []uint32) []node.KeptOutput {
	newest := make([]executor.Newest, len(positions))
	for _, h := range rd.handlers {
		if f, ok := h.(executor.Finder); ok {
			for i, found := range f.FindNewest(job.String(), positions) {
				newest[i] = newer(newest[i], found)
			}
		}
	}
	for i, position := range positions {
		newest[i] = newer(newest[i], rd.newestHome(job, position))
	}
	var out []node.KeptOutput
	for i, position := range positions {
		k := node.KeptOutput{Position: position, Attempt: newest[i].Attempt}
		switch err := newest[i].Err; {
		case k.Attempt > 0:
		case err != nil:
			k.Err = rd.unreadable("its output", err)
		default:
			k.Err = rd.removal("its output", job, position, 0)
		}
		if k.Attempt > 0 || k.Err != nil {
			out = append(out, k)
		}
	}
	return out
}

// newer returns the better of what two handlers have found.
func newer(a, b executor.Newest) executor.Newest {
	if b.Attempt > a.Attempt || a.Attempt == 0 && a.Err == nil {
		return b
	}
	return a
}

// removal says why and when this site has removed an attempt's output, or with attempt 0
// the newest one's; nil if it knows nothing of that.
func (rd *Reader) removal(what string, job command.JobID, position, attempt uint32) error {
	for _, h := range rd.handlers {
		past, ok := h.(executor.OutputHistory)
		if !ok {
			continue
		}
		r, found := past.RemovedOutput(job.String(), position, attempt)
		if !found {
			continue
		}
		why := "to make room: all outputs together took more than task_logs.max_bytes"
		if r.ByAge {
			why = "as it was older than task_logs.keep"
		}
		return fmt.Errorf("%s was removed by site %s at %s, %s: %w",
			what, rd.site, r.At.UTC().Format("2006-01-02 15:04:05 MST"), why, node.ErrOutputGone)
	}
	return nil
}

// unreadable words why an output that this site has cannot be read.
func (rd *Reader) unreadable(what string, err error) error {
	switch {
	case errors.Is(err, executor.ErrDamaged):
		return fmt.Errorf("%s was kept at site %s and is lost, %w; what is known of the task's end, and other outputs, are not touched: %w", what, rd.site, err, node.ErrOutputDamaged)
	case errors.Is(err, executor.ErrUnreadable):
		return fmt.Errorf("%s may be at site %s, but what that keeps %w; ask again, or have its operator see to the disk: %w", what, rd.site, err, node.ErrOutputUnreadable)
	}
	return fmt.Errorf("read %s: %w", what, err)
}
