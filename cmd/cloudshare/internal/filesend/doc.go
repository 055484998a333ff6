// Package filesend makes a job's inputs of files of this machine, and sends a broker what it lacks: before step 1 of a
// job's way. It asks a broker over HTTP, by api/client, and knows no command; what is typed it reads in given.go.
//
//	scan ──▶ hash, in parallel ──▶ manifests ──▶ POST /v1/blobs/missing ──▶ PUT /v1/blobs/HASH, or an upload in pieces
//
// What was read is what is sent: a file that changes meanwhile is refused by name.
package filesend

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// ErrChanged says that a file was written while it was read.
var ErrChanged = errors.New("changed while it was read: send it once nobody writes it")

// Broker is what files are sent to: see client.Client.
type Broker interface {
	cli.Asker
	Upload(ctx context.Context, sha256 string, content io.ReaderAt, size int64, sent func(bytes int64)) error
}

// Sender makes inputs of local files, and sends them.
type Sender struct {
	broker   Broker
	progress cli.Progress
	note     func(format string, args ...any)
	pause    func(ctx context.Context, d time.Duration) error
	// blobs are what the inputs that were prepared need, by hash; order is that in which they were met.
	blobs map[string]blob
	order []string
}

// New returns a sender; note hears of what is passed over.
func New(broker Broker, progress cli.Progress, note func(format string, args ...any)) *Sender {
	return &Sender{broker: broker, progress: progress, note: note, pause: cli.Sleep, blobs: map[string]blob{}}
}
