package api

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
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

// AwaitInputs implements Broker.
func (f *fakeBroker) AwaitInputs(context.Context) (ids []command.JobID, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for num := range f.awaiting {
		ids = append(ids, command.JobID{Site: f.site, Num: num})
	}
	return ids, nil
}

// Brought implements Broker.
func (f *fakeBroker) Brought(_ context.Context, id command.JobID, spec jobspec.Spec) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaiting[id.Num] {
		return node.ErrEnded
	}
	f.jobs[id.Num-1].Spec = spec
	f.over(id.Num)
	return nil
}

// NotBrought implements Broker.
func (f *fakeBroker) NotBrought(_ context.Context, id command.JobID, why string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaiting[id.Num] {
		return node.ErrEnded
	}
	f.attached[id.Num].End = &node.AttachedEnd{State: "cancelled", Reason: why, Unbrought: true}
	f.over(id.Num)
	return nil
}

// over has a job await its inputs no more. REQUIRES: f.mu held.
func (f *fakeBroker) over(num uint64) {
	delete(f.awaiting, num)
	f.settled <- num
}

// AttachedEnded implements Broker.
func (f *fakeBroker) AttachedEnded(id command.JobID) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := make(chan struct{})
	if a := f.attached[id.Num]; a == nil || a.End != nil {
		close(over)
	}
	return over
}

// end has a job end.
func (f *fakeBroker) end(num uint64, end node.AttachedEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[num-1].State, f.jobs[num-1].Reason = end.State, end.Reason
	f.attached[num].End = &end
}
