package stageout

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// Answer gives a site the manifest of an attempt of its own job, and the blobs that it names; see transfer.Server.
func (k *Keeper) Answer(_ context.Context, from string, q transfer.Request) (transfer.Source, transfer.Refusal) {
	if q.Attempt.Job.Site != from {
		return nil, transfer.NotAllowed
	}
	k.mu.Lock()
	e, gone := k.by[q.Attempt], k.gone[q.Attempt]
	k.mu.Unlock()
	switch {
	case gone:
		return nil, transfer.Gone
	case e == nil:
		return nil, transfer.NotHere
	}
	at, hash := store.OutgoingOf(from), files.Hash(q.Hash)
	switch q.What {
	case transfer.Manifest:
		if hash != files.Hash(e.Output.Manifest) {
			return nil, transfer.NotAllowed
		}
	case transfer.Output:
		named, err := k.named(q.Attempt, at, e, hash)
		if err != nil {
			return nil, transfer.Failed
		}
		if !named {
			return nil, transfer.NotAllowed
		}
	case transfer.Release:
		return nil, k.release(q.Attempt, e, hash)
	default: // an input, or what a later version asks for
		return nil, transfer.NotAllowed
	}
	r, err := k.cfg.Store.Open(at, hash)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return nil, transfer.NotHere
	case errors.Is(err, store.ErrBusy):
		return nil, transfer.Busy
	case err != nil:
		return nil, transfer.Failed
	}
	return r, transfer.Granted
}

// release lets go what is left of a task that has not succeeded, as its owner says. The attempt itself may have: its
// task was cancelled while it was delivering, or its owner missed something. While it is delivering the state decides.
func (k *Keeper) release(ref command.AttemptRef, e *Entry, manifest files.Hash) transfer.Refusal {
	if manifest != files.Hash(e.Output.Manifest) || e.Succeeded && k.cfg.Wanted(ref) {
		return transfer.NotAllowed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e.released, k.due = true, true
	return transfer.Gone
}

// named reports whether the manifest of an attempt names a blob.
func (k *Keeper) named(ref command.AttemptRef, at store.Place, e *Entry, h files.Hash) (bool, error) {
	k.mu.Lock()
	hashes, known := k.names.get(ref)
	k.mu.Unlock()
	if !known {
		var err error
		if hashes, err = k.read(at, files.Hash(e.Output.Manifest)); err != nil {
			return false, err
		}
		k.mu.Lock()
		k.names.put(ref, hashes)
		k.mu.Unlock()
	}
	_, named := hashes[h]
	return named, nil
}

// read returns the blobs that a manifest names.
func (k *Keeper) read(at store.Place, manifest files.Hash) (map[files.Hash]struct{}, error) {
	r, err := k.cfg.Store.Open(at, manifest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	list, err := files.NewManifestReader(r).Blobs()
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", manifest, err)
	}
	hashes := make(map[files.Hash]struct{}, len(list))
	for _, h := range list {
		hashes[h] = struct{}{}
	}
	return hashes, nil
}

// maxNames bounds the hashes that are remembered of manifests.
const maxNames = 500_000

// index remembers the blobs of manifests that were asked for last.
type index struct {
	by    map[command.AttemptRef]map[files.Hash]struct{}
	order []command.AttemptRef // oldest first; those that were dropped stand in it until they are the oldest
	sum   int
}

func newIndex() index { return index{by: map[command.AttemptRef]map[files.Hash]struct{}{}} }

func (x *index) get(ref command.AttemptRef) (map[files.Hash]struct{}, bool) {
	hashes, known := x.by[ref]
	return hashes, known
}

func (x *index) put(ref command.AttemptRef, hashes map[files.Hash]struct{}) {
	if _, known := x.by[ref]; known {
		return
	}
	x.by[ref], x.order, x.sum = hashes, append(x.order, ref), x.sum+len(hashes)+1
	for x.sum > maxNames && len(x.order) > 1 || len(x.order) > maxNames {
		x.drop(x.order[0])
		x.order = x.order[1:]
	}
}

func (x *index) drop(ref command.AttemptRef) {
	if hashes, known := x.by[ref]; known {
		delete(x.by, ref)
		x.sum -= len(hashes) + 1
	}
}
