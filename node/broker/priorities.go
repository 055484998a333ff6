package broker

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// stillWanted says what becomes of a priority that the state has not in time.
const stillWanted = "it is recorded at this site, and changed once there is one"

// SetPriority gives jobs of this site another priority, all in one command: one error or nil per job, in order. For
// another site's job it is an *ElsewhereError; if the job has ended, it wraps ErrEnded.
func (b *Broker) SetPriority(ctx context.Context, ids []command.JobID, priority int32) []error {
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, node.ErrNoQuorum)
	defer cancel()
	out := make([]error, len(ids))
	var nums []uint64
	var places []int // of these in ids
	for i, id := range ids {
		switch {
		case priority < -command.MaxPriority || priority > command.MaxPriority:
			out[i] = fmt.Errorf("%w: priority %d is not from %d to %d", node.ErrBadParams, priority, -command.MaxPriority, command.MaxPriority)
		case id.Site == b.cfg.Site:
			nums, places = append(nums, id.Num), append(places, i)
		default:
			if _, out[i] = b.Job(ctx, id); out[i] == nil {
				out[i] = b.Elsewhere(id.Site, "owner")
			}
		}
	}
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, len(nums))
	left := map[int]bool{}
	for _, at := range places {
		left[at] = true
	}
	posted := len(nums) == 0 || b.post(core.PriorityEvent{
		Nums: nums, Priority: priority, Reply: func(i int, err error) { answers <- answer{places[i], err} },
	})
	why, still := error(nil), ""
	if !posted {
		why = node.ErrStopping
	}
	for len(left) > 0 && why == nil {
		select {
		case a := <-answers:
			out[a.i] = a.err
			delete(left, a.i)
		case <-ctx.Done():
			why, still = context.Cause(ctx), ": "+stillWanted
		case <-b.ctx.Done():
			why = node.ErrStopping
		}
	}
	for at := range left {
		out[at] = fmt.Errorf("change the priority of job %s: %w%s", ids[at], why, still)
	}
	return out
}
