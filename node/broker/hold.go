package broker

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// SetHold holds a job of this site by hand, or lets it go. For another site's job it is an *ElsewhereError; if the job
// has ended, it wraps ErrEnded.
func (b *Broker) SetHold(ctx context.Context, id command.JobID, hold bool) error {
	if id.Site != b.cfg.Site {
		return b.changedElsewhere(ctx, id)
	}
	what := fmt.Sprintf("hold or release job %s", id)
	done := make(chan error, 1)
	if !b.post(core.HoldEvent{Num: id.Num, Hold: hold, Reply: func(err error) { done <- err }}) {
		return fmt.Errorf("%s: %w", what, node.ErrStopping)
	}
	return b.changeOutcome(ctx, what, "", done)
}
