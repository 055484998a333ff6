package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// Polling of a job that is waited for.
const (
	pollFirst = 50 * time.Millisecond
	pollMost  = time.Second
	// patience is how long a broker may be away while its job is waited for:
	// it may be restarting.
	patience = 30 * time.Second
)

// ends are the job states that are final, with their exit codes.
var ends = map[string]int{
	"succeeded": exitOK, "failed": exitFailed, "cancelled": exitCancelled, "lost": exitLost,
}

// wait blocks until every job has ended. The exit code is that of the first
// job that did not succeed.
func (a *app) wait(ctx context.Context, c *client.Client, ids []string) error {
	var first error
	for _, id := range ids {
		job, err := a.await(ctx, c, id)
		if err != nil {
			return err
		}
		if code := ends[job.State]; code != exitOK && first == nil {
			why := ""
			if job.Reason != "" {
				why = ": " + job.Reason
			}
			first = &exitCode{code, fmt.Errorf("job %s %s%s", id, job.State, why)}
		}
	}
	return first
}

// await polls one job until its end and shows its progress.
func (a *app) await(ctx context.Context, c *client.Client, id string) (wire.Job, error) {
	p := a.newProgress(id)
	defer p.close()
	return poll(ctx, c, id, func(j wire.Job) bool {
		p.update(j)
		_, ended := ends[j.State]
		return ended
	})
}

// poll asks for a job until done says so.
func poll(ctx context.Context, c *client.Client, id string, done func(wire.Job) bool) (wire.Job, error) {
	pause, away := pollFirst, time.Duration(0)
	for {
		job, err := c.Job(ctx, id)
		switch {
		case err == nil && done(job):
			return job, nil
		case err == nil:
			away = 0
		case !passing(err) || away > patience || ctx.Err() != nil:
			return job, err
		default:
			away += pause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return job, ctx.Err()
		}
		pause = min(pause*3/2, pollMost)
	}
}

// passing reports an error that a restart or a new lead ends.
func passing(err error) bool {
	var p *client.Problem
	return errors.Is(err, client.ErrUnreachable) ||
		errors.As(err, &p) && (p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests)
}

// progress tells how far a job is: a bar on a terminal, else a line for each
// change.
type progress struct {
	a    *app
	id   string
	bar  *progressbar.ProgressBar
	last string
}

func (a *app) newProgress(id string) *progress { return &progress{a: a, id: id} }

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *progress) update(j wire.Job) {
	text := tally(j.Counts)
	if text == p.last {
		return
	}
	p.last = text
	if !isTerminal(p.a.err) {
		p.a.note("%s %s: %s", p.id, j.State, text)
		return
	}
	var all, over int64
	for state, n := range j.Counts {
		all += int64(n)
		if _, end := ends[state]; end {
			over += int64(n)
		}
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(all, progressbar.OptionSetWriter(p.a.err), progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
	}
	p.bar.Describe(p.id + " " + text)
	_ = p.bar.Set64(over) // only a terminal that went away fails
}

func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear() // see update
	}
}

// follow prints the output of a job's one task, stdout to stdout and stderr to
// stderr, and then waits for the end.
func (a *app) follow(ctx context.Context, c *client.Client, id string) error {
	_, err := poll(ctx, c, id, func(j wire.Job) bool {
		_, ended := ends[j.State]
		return ended || j.StartedAt != nil
	})
	if err != nil {
		return err
	}
	errs := make(chan error, 2)
	for stream, to := range map[string]io.Writer{"stdout": a.out, "stderr": a.err} {
		go func() { errs <- copyLogs(ctx, c, id, client.LogQuery{Stream: stream, Follow: true}, to) }()
	}
	missing := false
	for range 2 {
		if err := <-errs; err != nil && ctx.Err() == nil {
			a.note("output is not complete: %s", explain(err))
			missing = true
		}
	}
	if err := a.wait(ctx, c, []string{id}); err != nil || !missing {
		return err
	}
	return incomplete(id)
}
