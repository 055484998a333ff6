package leftover

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

const (
	// releaseWithin is how long a site is asked to let go what it kept, releaseTries how often if it does not hear it;
	// firstPause and longestPause lie between two tries. What it never hears it lets go by its own rules.
	releaseWithin = 10 * time.Second
	releaseTries  = 10
	firstPause    = time.Second
	longestPause  = time.Minute
	// maxReleases bounds what waits until a site is told of it; the rest it is not told.
	maxReleases = 4096
)

// releases are what sites are to be told that they may let go. Telling is not fetching: a site that does not answer
// holds up neither what others have kept, nor what it has itself.
type releases struct {
	mu sync.Mutex
	// at has what waits, by site. Invariant: a site stands in it exactly while somebody tells it.
	at map[string][]transfer.Blob
}

func newReleases() releases { return releases{at: map[string][]transfer.Blob{}} }

// add notes what a site is to be told; begin: nobody tells it yet, and the caller does until take has nothing.
func (r *releases) add(site string, blobs []transfer.Blob) (begin bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, told := r.at[site]
	r.at[site] = append(waiting, blobs[:min(len(blobs), max(maxReleases-len(waiting), 0))]...)
	return !told
}

// back has a site told again what it has not heard, before what came since.
func (r *releases) back(site string, blobs []transfer.Blob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.at[site]
	r.at[site] = append(blobs, waiting[:min(len(waiting), max(maxReleases-len(blobs), 0))]...)
}

// take returns what a site is to be told now; nothing: the caller tells it no more.
func (r *releases) take(site string) (blobs []transfer.Blob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if blobs = r.at[site]; len(blobs) == 0 {
		delete(r.at, site)
		return nil
	}
	r.at[site] = nil
	return blobs
}

// releaseAll tells a site what it may let go, until there is nothing more.
func (f *Fetcher) releaseAll(site string) {
	pause, tries := firstPause, 1
	for {
		blobs := f.releases.take(site)
		if len(blobs) == 0 {
			return
		}
		left := f.release(site, blobs)
		if len(left) == 0 || tries == releaseTries {
			pause, tries = firstPause, 1
			continue
		}
		f.releases.back(site, left)
		if coord.Sleep(f.ctx, pause) != nil {
			return
		}
		pause, tries = min(2*pause, longestPause), tries+1
	}
}

// release tells a site once, and returns what it has not heard, or cannot judge yet.
func (f *Fetcher) release(site string, blobs []transfer.Blob) (left []transfer.Blob) {
	addr, entry := f.cfg.Source.Where(site)
	if addr == "" {
		return blobs
	}
	ctx, cancel := context.WithTimeout(f.ctx, releaseWithin)
	defer cancel()
	heard := make([]bool, len(blobs))
	_ = f.cfg.Transfers.PullBatch(ctx, site, addr, entry, blobs, func(i int, _ []byte, refused error) error {
		var r *transfer.RefusedError
		heard[i] = refused == nil || errors.As(refused, &r) && !r.Temporary()
		return nil
	})
	for i, yes := range heard {
		if !yes {
			left = append(left, blobs[i])
		}
	}
	return left
}
