package statecmd

import (
	"context"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// noteEvery is how often a line says how far a command is that has no terminal.
const noteEvery = 5 * time.Second

// bytesBar shows how much of some bytes was gone through: a bar on a terminal, elsewhere a line now and then.
type bytesBar struct {
	ctx   context.Context //nolint:containedctx // of the command that it is of
	app   *cli.App
	what  string
	bar   *progressbar.ProgressBar // nil = no terminal
	size  int64
	noted time.Time
}

func newBytesBar(ctx context.Context, a *cli.App, what string, size int64) *bytesBar {
	return &bytesBar{
		ctx: ctx, app: a, what: what, size: size, noted: time.Now(),
		bar: a.Bar(size, what, progressbar.OptionShowBytes(true)),
	}
}

// at shows how many bytes are done.
func (b *bytesBar) at(done int64) {
	switch now := time.Now(); {
	case b.bar != nil:
		_ = b.bar.Set64(done) // only a terminal that went away fails
	case now.Sub(b.noted) >= noteEvery && b.size > 0:
		b.noted = now
		b.app.Note("%s: %d%%", b.what, 100*done/b.size)
	}
}

// close takes the bar away; it returns why the command was interrupted, if it was.
func (b *bytesBar) close() error {
	if b.bar != nil {
		_ = b.bar.Clear() // see at
	}
	return b.ctx.Err()
}

// until returns a writer that fails once the command is interrupted.
func (b *bytesBar) until(to io.Writer) io.Writer { return interruptible{b.ctx, to} }

type interruptible struct {
	ctx context.Context //nolint:containedctx // see bytesBar
	to  io.Writer
}

// Write implements io.Writer.
func (w interruptible) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}
