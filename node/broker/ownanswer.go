package broker

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// GiveFile answers another site's broker, whose state is as of an entry: what of an attempt it may have. See
// transfer.Server.
func (b *Broker) GiveFile(ctx context.Context, from string, q transfer.Request) (transfer.Source, transfer.Refusal) {
	k := b.owned
	switch {
	case k == nil:
		return nil, transfer.NotHere
	case !b.recovered.Load(): // "it is not here" would be believed for good
		return nil, transfer.Behind
	}
	give := k.outgoing
	switch q.What { //nolint:exhaustive // the rest is given whatever the state says
	case transfer.Input:
		give = k.giveInput
	case transfer.Release:
		if !k.isAsNew(ctx, q.Index) { // it may take for delivering what its owner knows to be over
			return nil, transfer.Behind
		}
	}
	src, why := give(ctx, from, q)
	if src == nil {
		return nil, why
	}
	return &countedSource{Source: src, sent: &k.sent}, transfer.Granted
}

// giveInput gives a blob if, by this broker's own state, an attempt of its own job that names it is assigned to the
// site that asks.
func (k *ownFiles) giveInput(ctx context.Context, from string, q transfer.Request) (transfer.Source, transfer.Refusal) {
	if !k.isAsNew(ctx, q.Index) {
		return nil, transfer.Behind
	}
	job := q.Attempt.Job
	if job.Site != k.b.cfg.Site || !k.assigned(from, q.Attempt) {
		return nil, transfer.NotAllowed
	}
	user, yes := k.inputs.Names(job.Num, q.Hash)
	if !yes && user == "" && k.recalled(job) { // it may be kept since just now, or this broker has just started
		user, yes = k.inputs.Names(job.Num, q.Hash)
	}
	if !yes {
		return nil, transfer.NotAllowed
	}
	return k.open(store.OwnOf(user), q.Hash)
}

// isAsNew waits until this broker's state is as of an entry; false: ctx ends before.
func (k *ownFiles) isAsNew(ctx context.Context, entry uint64) bool {
	r := k.b.cfg.Replica
	return r.Index() >= entry || r.Await(ctx, func(s *fsm.State) bool { return s.Index() >= entry }) == nil
}

// assigned reports whether an attempt is assigned to a site, and its job wants it to run.
func (k *ownFiles) assigned(from string, ref command.AttemptRef) (yes bool) {
	k.b.cfg.Replica.View(func(s *fsm.State) {
		as, known := s.Assignment(from, ref)
		yes = known && as.AttemptRef == ref && len(as.Payload) > 0
	})
	return yes
}

// recalled has the files of a job kept that is in the state and has not ended.
func (k *ownFiles) recalled(id command.JobID) (known bool) {
	var v fsm.JobView
	k.b.cfg.Replica.View(func(s *fsm.State) { v, known = s.Job(id) })
	if known = known && !v.State.Ended(); known {
		k.recall(v.Spec)
	}
	return known
}

// open opens a blob for another site.
func (k *ownFiles) open(at store.Place, h files.Hash) (transfer.Source, transfer.Refusal) {
	r, err := k.store.Open(at, h)
	switch {
	case err == nil:
		return &verified{r, func() { _ = k.store.Verify(at, h) }}, transfer.Granted
	case errors.Is(err, store.ErrUnknown):
		return nil, transfer.NotHere
	case errors.Is(err, store.ErrBusy):
		return nil, transfer.Busy
	}
	return nil, transfer.Failed
}

// verified is a blob that is read to its end if a part of it cannot be read: then the store knows that it is damaged.
type verified struct {
	*store.Reader
	verify func()
}

// ReadAt implements io.ReaderAt.
func (v *verified) ReadAt(p []byte, off int64) (int, error) {
	n, err := v.Reader.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		v.verify()
	}
	return n, err
}

// countedSource counts what is read of a blob.
type countedSource struct {
	transfer.Source
	sent *atomic.Int64
}

// ReadAt implements io.ReaderAt.
func (c *countedSource) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Source.ReadAt(p, off)
	c.sent.Add(int64(n))
	return n, err
}
