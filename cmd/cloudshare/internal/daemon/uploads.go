package daemon

import (
	"context"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/files/uploads"
)

// openUploads opens what has come of unfinished uploads; nil: none are taken, for no files travel with tasks here.
func openUploads(cfg config.Config) (*uploads.Uploads, error) {
	if _, some := cfg.ForFiles(); !some {
		return nil, nil //nolint:nilnil // there are none
	}
	return uploads.Open(uploads.Config{Dir: filepath.Join(cfg.DataDir, "uploads"), Now: time.Now})
}

// sweepEvery is how often uploads go that nobody goes on with.
const sweepEvery = 10 * time.Minute

// sweepUploads removes them until endSweep.
func (p *brokerParts) sweepUploads() {
	if p.uploads == nil {
		return
	}
	p.endSweep = background(func(ctx context.Context) {
		for cli.Sleep(ctx, sweepEvery) == nil {
			p.uploads.Sweep()
		}
	})
}
