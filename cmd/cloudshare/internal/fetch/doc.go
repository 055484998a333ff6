// Package fetch brings the files that a job's tasks have left into a folder of this machine: behind step 6 of a job's
// way. It asks a broker over HTTP, by a Broker, and knows no command.
//
// Nothing outside the folder is written, whatever paths and links say (os.Root); what is there stays, unless it is to
// be overwritten; each file's SHA-256 is checked before it has its name. So fetching again goes on where it ended.
package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Broker is what this package needs of a client: see client.Client.Ask.
type Broker interface {
	Ask(ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header,
	) (*http.Response, error)
}

// Progress shows how far it is. Its methods may be called from several goroutines.
type Progress interface {
	Begin(what string, bytes int64)
	Done(bytes int64)
	End()
}

// ErrThere says that a file of that name is there, and is another one.
var ErrThere = errors.New("is there already, and is another one")

// Fetcher fetches files.
type Fetcher struct {
	broker   Broker
	progress Progress
	pause    func(ctx context.Context, d time.Duration) error
}

// New returns a fetcher.
func New(broker Broker, progress Progress) *Fetcher {
	return &Fetcher{broker: broker, progress: progress, pause: sleep}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
