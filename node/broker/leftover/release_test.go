package leftover

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

// deafAt are transfers of a federation in which one site hears no release.
type deafAt struct {
	*federation
	site string
}

func (d deafAt) PullBatch(ctx context.Context, site, addr string, entry uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	if site == d.site && blobs[0].What == transfer.Release {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return d.federation.PullBatch(ctx, site, addr, entry, blobs, take)
}

// TestDeafSiteHoldsUpNothing: what it has kept comes all the same, and what others have is fetched and released, before
// it is given up to tell it anything.
func TestDeafSiteHoldsUpNothing(t *testing.T) {
	f := left(t, 400)
	for i := range f.tasks {
		if i%2 == 0 {
			f.tasks[i].Site = "deaf"
		}
	}
	o := f.ownerOf(t, [2]string{t.TempDir(), t.TempDir()}, deafAt{f, "deaf"})
	o.await(o.kept, 400)
	o.await(func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.released)
	}, 200)
	if o.releases.mu.Lock(); o.releases.at["deaf"] == nil || len(o.releases.at["deaf"]) > maxReleases {
		t.Errorf("%d wait for the site that hears nothing", len(o.releases.at["deaf"]))
	}
	o.releases.mu.Unlock()
	o.end() // without waiting for it, either
}

// deafFirst are transfers of a federation that loses the first releases, or whose sites cannot judge them yet.
type deafFirst struct {
	*federation
	lost *atomic.Int32 // how many are still to be
}

func (d deafFirst) PullBatch(ctx context.Context, site, addr string, entry uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	if blobs[0].What != transfer.Release {
		return d.federation.PullBatch(ctx, site, addr, entry, blobs, take)
	}
	switch n := d.lost.Add(-1); {
	case n >= 0 && n%2 == 0:
		return transfer.ErrUnreachable
	case n >= 0:
		for i := range blobs {
			if err := take(i, nil, &transfer.RefusedError{Refusal: transfer.Behind}); err != nil {
				return err
			}
		}
		return nil
	}
	return d.federation.PullBatch(ctx, site, addr, entry, blobs, take)
}

// TestReleasesAreSaidAgain: a site that did not hear one, or could not judge it yet, kept what was fetched until
// data.hold was over.
func TestReleasesAreSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := left(t, 20)
		lost := new(atomic.Int32)
		lost.Store(5)
		o := f.ownerOf(t, [2]string{t.TempDir(), t.TempDir()}, deafFirst{f, lost})
		o.await(o.kept, 20)
		o.await(func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.released)
		}, 20)
		o.end()
	})
}

// TestReleasesAreBounded: what waits for a site, and who tells it.
func TestReleasesAreBounded(t *testing.T) {
	r := newReleases()
	some := make([]transfer.Blob, 1000)
	for i := range some {
		some[i].Attempt = command.AttemptRef{Task: uint32(i)}
	}
	for i := range 10 {
		if begin := r.add("a", some); begin != (i == 0) {
			t.Errorf("%d: %t", i, begin)
		}
	}
	if n := len(r.take("a")); n != maxReleases {
		t.Errorf("%d wait", n)
	}
	if r.add("a", some[:1]) {
		t.Error("it is told already")
	}
	if n := len(r.take("a")); n != 1 {
		t.Errorf("%d wait", n)
	}
	if n := len(r.take("a")); n != 0 || !r.add("a", some[:1]) {
		t.Errorf("%d wait, and nobody tells it any more", n)
	}
}
