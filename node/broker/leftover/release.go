package leftover

import (
	"context"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

const (
	// releaseWithin is how long a site is asked to let go what it kept. What is not heard it lets go by itself.
	releaseWithin = 10 * time.Second
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
	for {
		blobs := f.releases.take(site)
		if len(blobs) == 0 {
			return
		}
		f.release(site, blobs)
	}
}

func (f *Fetcher) release(site string, blobs []transfer.Blob) {
	addr, entry := f.cfg.Source.Where(site)
	if addr == "" {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, releaseWithin)
	defer cancel()
	_ = f.cfg.Transfers.PullBatch(ctx, site, addr, entry, blobs, func(int, []byte, error) error { return nil })
}
