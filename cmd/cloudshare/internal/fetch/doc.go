// Package fetch brings the files that a job's tasks have left into a folder of this machine: behind step 6 of a job's
// way. It asks a broker over HTTP, by a cli.Asker, and knows no command.
//
// Nothing outside the folder is written, whatever paths and links say (os.Root); what is there stays, unless it is to
// be overwritten; each file's SHA-256 is checked before it has its name. So fetching again goes on where it ended. What
// a fetch that was killed has left beside its files goes with the next one.
package fetch

import (
	"context"
	"errors"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// ErrThere says that a file of that name is there, and is another one.
var ErrThere = errors.New("is there already, and is another one")

// Fetcher fetches files.
type Fetcher struct {
	broker   cli.Asker
	progress cli.Progress
	pause    func(ctx context.Context, d time.Duration) error
}

// New returns a fetcher.
func New(broker cli.Asker, progress cli.Progress) *Fetcher {
	return &Fetcher{broker: broker, progress: progress, pause: cli.Sleep}
}
