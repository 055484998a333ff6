package broker

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// DryRun says what would become of a submission, and accepts nothing. Errors are those of a submission.
func (b *Broker) DryRun(ctx context.Context, req node.Request) (node.Why, error) {
	if err := b.notify.book.Admit([]node.Request{req})[0]; err != nil {
		return node.Why{}, err
	}
	words, vain, err := b.foresee(ctx, req)
	if err != nil {
		return node.Why{}, err
	}
	w, err := b.Reader.DryRun(ctx, req)
	switch {
	case err != nil || words == "":
		return w, err
	case vain:
		w = node.Why{Job: w.Job, State: fsm.TaskCancelled.String(), Summary: "it would be cancelled at once: it " + words}
		w.Estimate.Unknown = "it would never begin"
	default:
		w = node.Why{Job: w.Job, State: fsm.Queued.String(), Waiting: w.Waiting, Summary: words}
		w.Estimate.Unknown = "it begins when what it waits for has ended"
	}
	return w, nil
}

// foreseen is what the core says of a request's job.
type foreseen struct {
	words string
	vain  bool
	err   error
}

// foresee asks what a submission's job would wait for; see core.ForeseeEvent.
func (b *Broker) foresee(ctx context.Context, req node.Request) (words string, vain bool, err error) {
	if len(req.Spec.After) == 0 {
		return "", false, nil
	}
	var f foreseen
	err = b.postAndWait(ctx, func(done func()) core.Event {
		return core.ForeseeEvent{Req: req, Reply: func(words string, vain bool, err error) {
			f = foreseen{words, vain, err}
			done()
		}}
	})
	if err != nil {
		return "", false, err
	}
	return f.words, f.vain, f.err
}
