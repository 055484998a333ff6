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
	waits := make([]chan error, len(ids))
	var nums []uint64
	var places []int // of these in ids
	for i, id := range ids {
		switch {
		case priority < -command.MaxPriority || priority > command.MaxPriority:
			out[i] = fmt.Errorf("%w: priority %d is not from %d to %d", node.ErrBadParams, priority, -command.MaxPriority, command.MaxPriority)
		case id.Site != b.cfg.Site:
			out[i] = b.changedElsewhere(ctx, id)
		default:
			nums, places = append(nums, id.Num), append(places, i)
			waits[i] = make(chan error, 1)
		}
	}
	posted := len(nums) == 0 || b.post(core.PriorityEvent{
		Nums: nums, Priority: priority, Reply: func(i int, err error) { waits[places[i]] <- err },
	})
	for _, i := range places {
		what := fmt.Sprintf("change the priority of job %s", ids[i])
		if out[i] = fmt.Errorf("%s: %w", what, node.ErrStopping); posted {
			out[i] = b.changeOutcome(ctx, what, stillWanted, waits[i])
		}
	}
	return out
}
