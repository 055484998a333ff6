package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// wordsOfStore wraps an error of the store by which the API answers.
func wordsOfStore(err error) error {
	switch {
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("%w: %w", node.ErrStorageFull, err)
	case errors.Is(err, store.ErrUnknown):
		return fmt.Errorf("%w: %w", node.ErrNotFound, err)
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrClosed):
		return fmt.Errorf("%w: %w", node.ErrNotReady, err)
	}
	return err
}

// MissingBlobs returns which of a user's blobs are not there. The others stay for a day from now on.
func (b *Broker) MissingBlobs(user string, hashes []files.Hash) ([]files.Hash, error) {
	if b.owned == nil {
		return nil, node.ErrNoFiles
	}
	return b.owned.store.Missing(store.OwnOf(user), hashes...), nil
}

// PutBlob keeps what r has, to its end, and returns its name. Errors: those of package store; node.ErrStorageFull,
// node.ErrNotReady.
func (b *Broker) PutBlob(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error) {
	if b.owned == nil {
		return files.Blob{}, node.ErrNoFiles
	}
	if err := b.disk.Full(); err != nil {
		return files.Blob{}, err
	}
	blob, err := b.owned.store.Put(ctx, store.OwnOf(user), r, limit)
	return blob, wordsOfStore(err)
}

// BeginBlob returns a blob to be filled in pieces, or resumed. Errors are PutBlob's.
func (b *Broker) BeginBlob(user string, blob files.Blob) (node.PartialBlob, error) {
	if b.owned == nil {
		return nil, node.ErrNoFiles
	}
	if err := b.disk.Full(); err != nil {
		return nil, err
	}
	p, err := b.owned.store.Begin(store.OwnOf(user), blob)
	if err != nil {
		return nil, wordsOfStore(err)
	}
	return partialBlob{p}, nil
}

// partialBlob gives the API the words that it knows.
type partialBlob struct{ *store.Partial }

// WritePiece implements node.PartialBlob.
func (p partialBlob) WritePiece(i int, data []byte) error {
	return wordsOfStore(p.Partial.WritePiece(i, data))
}

// Finish implements node.PartialBlob.
func (p partialBlob) Finish() error { return wordsOfStore(p.Partial.Finish()) }

// OpenBlob opens one of a user's blobs.
func (b *Broker) OpenBlob(user string, h files.Hash) (node.BlobReader, error) {
	if b.owned == nil {
		return nil, node.ErrNoFiles
	}
	r, err := b.owned.store.Open(store.OwnOf(user), h)
	if err != nil {
		return nil, wordsOfStore(err)
	}
	return r, nil
}

// FilesUse returns what the spaces have; nil: this broker keeps no files.
func (b *Broker) FilesUse() []node.SpaceUse {
	if b.owned == nil {
		return nil
	}
	var list []node.SpaceUse
	for space := store.Own; space <= store.Outgoing; space++ {
		u := b.owned.store.Usage(space)
		list = append(list, node.SpaceUse{
			Space: space.String(), Bytes: u.Bytes, Max: u.Max, Promised: b.owned.store.Promised(space), Blobs: u.Blobs,
		})
	}
	return list
}

// Results returns what tasks of a job of this site have left, by task from a position on, so many at most, and the
// position to go on with, 0: there are no more.
func (b *Broker) Results(ctx context.Context, id command.JobID, from uint32, most int) (
	list []node.TaskResult, next uint32, err error,
) {
	found := false
	if b.owned != nil && id.Site == b.cfg.Site {
		list, next, found = b.owned.results.List(id.Num, from, most)
	}
	if found {
		return list, next, nil
	}
	job, err := b.Job(ctx, id)
	switch {
	case err != nil:
		return nil, 0, err
	case id.Site != b.cfg.Site:
		return nil, 0, b.Elsewhere(id.Site, "owner")
	case b.owned == nil:
		return nil, 0, node.ErrNoFiles
	case job.Spec.Outputs.Wanted() && !job.EndedAt.IsZero() && time.Since(job.EndedAt) > b.cfg.Data.KeepResults:
		return nil, 0, fmt.Errorf("what tasks of job %s have left was kept for %s (data.keep_results): %w", id,
			b.cfg.Data.KeepResults, node.ErrResultsGone)
	}
	return nil, 0, nil
}

// ResultSpec returns of a job of this site that is no longer kept, and whose results are, which tasks it has had.
func (b *Broker) ResultSpec(id command.JobID) (spec jobspec.Spec, known bool) {
	if b.owned == nil || id.Site != b.cfg.Site {
		return spec, false
	}
	shape, known := b.owned.results.ShapeOf(id.Num)
	if !known {
		return spec, false
	}
	spec.Count = shape.Count
	if shape.Indices == "" {
		return spec, true
	}
	var err error
	spec.Indices, err = jobspec.ParseIndices(shape.Indices)
	return spec, err == nil
}

// OpenResult opens a blob that a result of a job names: its manifest, or a file in it. Errors: node.ErrNotFound,
// node.ErrResultsGone for what the disk has lost.
func (b *Broker) OpenResult(id command.JobID, h files.Hash) (node.BlobReader, error) {
	if b.owned == nil {
		return nil, node.ErrNoFiles
	}
	user, yes := "", false
	if id.Site == b.cfg.Site {
		var err error
		if user, yes, err = b.owned.results.Names(id.Num, h); err != nil {
			return nil, err
		}
	}
	if !yes {
		return nil, fmt.Errorf("job %s has left no file %s: %w", id, h, node.ErrNotFound)
	}
	r, err := b.owned.store.Open(store.OwnOf(user), h)
	switch {
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrDamaged):
		return nil, fmt.Errorf("a file that job %s has left is lost here: %w: %w", id, node.ErrResultsGone, err)
	case err != nil:
		return nil, wordsOfStore(err)
	}
	return r, nil
}
