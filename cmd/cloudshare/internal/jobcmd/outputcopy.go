package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// copyOutput prints the output of several tasks, and tells of those whose output is
// not whole.
func copyOutput(ctx context.Context, a *cli.App, c *client.Client, id string, q client.OutputQuery, prefix bool) error {
	p := outputPrinter{a: a, id: id, prefix: prefix, missed: map[uint32]bool{}, read: map[reading]int64{}}
	for {
		next, err := p.page(ctx, c, q)
		if err != nil {
			return err
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	if err := p.endLine(); err != nil || p.first == nil {
		return err
	}
	return cli.WithExit(cli.CodeOf(p.first), fmt.Errorf("the output of %s is not here, or not whole", cli.Plural(int64(len(p.missed)), "task")))
}

// reading is one attempt's output, which only grows.
type reading struct{ task, attempt uint32 }

// outputPrinter prints pieces of several tasks' output.
type outputPrinter struct {
	a      *cli.App
	id     string
	prefix bool
	task   uint32
	inLine bool // the last line has no end yet
	first  *client.Problem
	missed map[uint32]bool // tasks whose output is not whole

	read map[reading]int64 // bytes that were printed
	skip map[reading]int64 // of these, that this connection still has to bring again
}

// page prints the output of some tasks, and returns where the next ones begin. What is followed is gone on with after
// a broken connection, as by the end of a token or of the broker.
func (p *outputPrinter) page(ctx context.Context, c *client.Client, q client.OutputQuery) (next string, err error) {
	clear(p.read)
	var away time.Time
	begun := false
	for {
		p.skip = maps.Clone(p.read)
		before := p.total()
		next, err = c.Output(ctx, p.id, q, p.print)
		begun = begun || errors.Is(err, client.ErrBrokeOff)
		if err == nil || !begun || !resumable(q) || !cli.IsPassing(err) {
			return next, err
		}
		switch {
		case p.total() > before:
			away = time.Time{}
		case away.IsZero():
			away = time.Now()
		case time.Since(away) > cli.Patience:
			return "", err
		}
		if err = cli.Sleep(ctx, pollMost); err != nil {
			return "", err
		}
	}
}

// resumable reports whether another connection brings the same again, and more: the tasks that are in a state, and the
// last lines, may be others by then.
func resumable(q client.OutputQuery) bool { return q.Follow && q.Tail == 0 && len(q.States) == 0 }

func (p *outputPrinter) total() (sum int64) {
	for _, n := range p.read {
		sum += n
	}
	return sum
}

// print prints one piece, or tells of a problem.
func (p *outputPrinter) print(o wire.Output) error {
	if o.Problem != nil {
		if p.missed[*o.Task] {
			return nil
		}
		if p.missed[*o.Task] = true; p.first == nil {
			p.first = o.Problem
		}
		p.a.Note("%s/%d: %s", p.id, *o.Task, cli.Explain(o.Problem))
		return nil
	}
	text := p.unread(&o)
	if !p.prefix || text == "" {
		_, err := io.WriteString(p.a.Out, text)
		return err
	}
	return p.printLines(*o.Task, text)
}

// unread returns what was not printed before of a piece.
func (p *outputPrinter) unread(o *wire.Output) string {
	text, of := o.Text+string(o.Base64), reading{*o.Task, o.Attempt}
	again := min(p.skip[of], int64(len(text)))
	p.skip[of] -= again
	text = text[again:]
	p.read[of] += int64(len(text))
	return text
}

// printLines prints a piece with the task before each line.
func (p *outputPrinter) printLines(task uint32, text string) error {
	if p.inLine && task != p.task {
		if err := p.endLine(); err != nil {
			return err
		}
	}
	p.task = task
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !p.inLine {
			fmt.Fprintf(&b, "%s/%d: ", p.id, p.task)
		}
		b.WriteString(line)
		p.inLine = !strings.HasSuffix(line, "\n")
	}
	_, err := io.WriteString(p.a.Out, b.String())
	return err
}

// endLine ends a line that its task did not end.
func (p *outputPrinter) endLine() error {
	if !p.inLine {
		return nil
	}
	p.inLine = false
	_, err := io.WriteString(p.a.Out, "\n")
	return err
}
