package api

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Attached implements Broker.
func (f *fakeBroker) Attached(ctx context.Context, id command.JobID) (node.Attached, error) {
	a, err := f.AttachedDocument(ctx, id)
	a.Document = nil
	return a, err
}

// AttachedDocument implements Broker.
func (f *fakeBroker) AttachedDocument(_ context.Context, id command.JobID) (node.Attached, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.attached[id.Num]
	if a == nil || id.Site != f.site {
		return node.Attached{}, fmt.Errorf("job %s: %w", id, node.ErrNotFound)
	}
	return *a, nil
}

// AttachedJobs implements Broker.
func (f *fakeBroker) AttachedJobs(
	_ context.Context, below uint64, most int, take func(*node.Attached) bool,
) (list []node.AttachedJob, next uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for num := uint64(len(f.jobs)); num > 0; num-- {
		a := f.attached[num]
		if a == nil || below != 0 && num >= below {
			continue
		}
		if len(list) == most {
			return list, num + 1
		}
		if take(a) {
			list = append(list, node.AttachedJob{Num: num, Attached: *a})
		}
	}
	return list, 0
}

// end has a job end.
func (f *fakeBroker) end(num uint64, end node.AttachedEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[num-1].State, f.jobs[num-1].Reason = end.State, end.Reason
	f.attached[num].End = &end
}
