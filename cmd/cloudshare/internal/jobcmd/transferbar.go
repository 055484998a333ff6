package jobcmd

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// noteEvery is how often a line says how far files are that have no terminal.
const noteEvery = 5 * time.Second

// transferBar shows how far files are: a bar on a terminal, elsewhere a line now and then.
type transferBar struct {
	app *cli.App

	mu         sync.Mutex
	bar        *progressbar.ProgressBar // nil = no terminal, or nothing is under way
	what       string
	size, done int64
	noted      time.Time
}

var _ cli.Progress = (*transferBar)(nil)

func newTransferBar(a *cli.App) *transferBar { return &transferBar{app: a} }

// Begin implements Progress.
func (b *transferBar) Begin(what string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.size, b.done, b.noted = what, bytes, 0, time.Now()
	if !b.app.Quiet && bytes > 0 {
		b.bar = b.app.Bar(bytes, what, progressbar.OptionShowBytes(true))
	}
}

// Done implements Progress.
func (b *transferBar) Done(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += bytes
	switch now := time.Now(); {
	case b.bar != nil:
		_ = b.bar.Set64(b.done) // only a terminal that went away fails
	case now.Sub(b.noted) >= noteEvery && b.size > 0:
		b.noted = now
		b.app.Note("%s: %s of %s", b.what, cli.Bytes(b.done), cli.Bytes(b.size))
	}
}

// End implements Progress.
func (b *transferBar) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		_ = b.bar.Clear() // see Done
		b.bar = nil
	}
}
