package results

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// Load reads the manifests of what earlier lives of the broker have kept, and pins what they name. It returns how many
// results are not whole any more: the disk has lost some of them. It is called once, and ends with ctx.
func (b *Book) Load(ctx context.Context) (broken int, err error) {
	defer close(b.loaded)
	for num, j := range b.jobs { // nobody else changes them before
		for i := range j.tasks {
			if err = context.Cause(ctx); err != nil {
				b.loadErr = fmt.Errorf("read the results of jobs: %w", err)
				return broken, b.loadErr
			}
			b.mu.Lock()
			if b.pin(num, j, &j.tasks[i]) != nil {
				broken++
			}
			b.mu.Unlock()
		}
	}
	return broken, nil
}

// blobsOf returns what a manifest names, each once, itself last.
func (b *Book) blobsOf(at store.Place, manifest files.Hash) ([]files.Hash, error) {
	r, err := b.store.Open(at, manifest)
	if err != nil {
		return nil, fmt.Errorf("%w: its manifest: %w", ErrNotWhole, err)
	}
	defer r.Close()
	list, err := files.NewManifestReader(r).Blobs()
	if err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	return append(list, manifest), nil // it cannot name itself
}

// pin pins what a result names. After an error nothing is pinned. REQUIRES: b.mu held.
func (b *Book) pin(num uint64, j *job, r *node.TaskResult) error {
	at := store.OwnOf(j.User)
	blobs, err := b.blobsOf(at, r.Manifest.Hash)
	if err != nil {
		return err
	}
	refs := make([]store.Ref, len(blobs))
	for i, h := range blobs {
		refs[i] = store.Ref{Place: at, Hash: h}
	}
	if missing := b.store.Pin(pinOf(num, r), refs...); len(missing) > 0 {
		b.store.Unpin(pinOf(num, r))
		return fmt.Errorf("%w: %d blobs are missing, %s is the first", ErrNotWhole, len(missing), missing[0])
	}
	for _, h := range blobs {
		j.blobs[h]++
	}
	return nil
}

// unpin ends what pin did. REQUIRES: b.mu held.
func (b *Book) unpin(num uint64, j *job, r *node.TaskResult) {
	blobs, err := b.blobsOf(store.OwnOf(j.User), r.Manifest.Hash)
	if err != nil { // the disk has lost it: its job names a little too much
		blobs = nil
	}
	for _, h := range blobs {
		if j.blobs[h]--; j.blobs[h] <= 0 {
			delete(j.blobs, h)
		}
	}
	b.store.Unpin(pinOf(num, r))
}

// pinOf has the manifest in it: after a new epoch an attempt of the same number may leave something else.
func pinOf(num uint64, r *node.TaskResult) string {
	return fmt.Sprintf("result/%d/%d/%s", num, r.Task, r.Manifest.Hash)
}
