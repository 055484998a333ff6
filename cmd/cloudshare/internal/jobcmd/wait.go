package jobcmd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

const (
	// pollFirst and pollMost are between two tries where something failed.
	pollFirst = 50 * time.Millisecond
	pollMost  = time.Second
	// waitPace is the least time between two looks at a job whose tasks end.
	waitPace = 100 * time.Millisecond
)

// waitForJobs blocks until every job has ended, and names the tasks that failed. The exit
// code is that of the first job that did not succeed.
func waitForJobs(ctx context.Context, a *cli.App, c *client.Client, ids []string) error {
	var first error
	for _, id := range ids {
		job, err := awaitJob(ctx, a, c, id)
		if err != nil {
			return err
		}
		tellFailed(ctx, a, c, job)
		if err := jobError(id, job); first == nil {
			first = err
		}
	}
	return first
}

// jobError returns the end of a job that did not succeed, nil of one that did.
func jobError(id string, job wire.Job) error {
	if cli.EndCodes[job.State] == cli.ExitOK {
		return nil
	}
	return jobEnd(id, job.State, job.Reason)
}

// awaitJob watches one job until its end and shows its progress.
func awaitJob(ctx context.Context, a *cli.App, c *client.Client, id string) (wire.Job, error) {
	p := newProgress(a, id)
	defer p.close()
	w := c.Watching(time.Minute)
	ask := func() (wire.Job, error) {
		job, err := w.Job(ctx, id)
		if isCrowded(err) { // looking now and then is always possible
			if err = cli.Sleep(ctx, pollMost); err == nil {
				return c.Job(ctx, id)
			}
		}
		return job, err
	}
	return waitFor(ctx, waitPace, ask, func(j wire.Job) bool {
		p.update(j)
		_, ended := cli.EndCodes[j.State]
		return ended
	})
}

// waitFor asks a watching client until done says so, at most once a pace. A
// broker that is away for less than patience may be restarting.
func waitFor[T any](ctx context.Context, pace time.Duration, ask func() (T, error), done func(T) bool) (T, error) {
	var away time.Time
	for {
		v, err := ask()
		pause := pace
		switch {
		case err == nil && done(v):
			return v, nil
		case err == nil:
			away = time.Time{}
		case ctx.Err() != nil || !cli.IsPassing(err) || !away.IsZero() && time.Since(away) > cli.Patience:
			return v, err
		default:
			if pause = pollMost; away.IsZero() {
				away = time.Now()
			}
		}
		if err = cli.Sleep(ctx, pause); err != nil {
			return v, err
		}
	}
}

// isCrowded reports whether too many clients wait at the broker.
func isCrowded(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && strings.HasSuffix(p.Type, ":too-many-waiters")
}

// progress tells how far a job is: a bar on a terminal, else a line for each
// change.
type progress struct {
	a    *cli.App
	id   string
	bar  *progressbar.ProgressBar
	last string
}

func newProgress(a *cli.App, id string) *progress { return &progress{a: a, id: id} }

func (p *progress) update(j wire.Job) {
	text := tally(j.Counts)
	if text == p.last {
		return
	}
	p.last = text
	if p.a.Quiet {
		return
	}
	if !cli.IsTerminal(p.a.Err) {
		p.a.Note("%s %s: %s", p.id, stateText(j), text)
		return
	}
	var all, over int64
	for state, n := range j.Counts {
		all += int64(n)
		if _, end := cli.EndCodes[state]; end {
			over += int64(n)
		}
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(all, progressbar.OptionSetWriter(p.a.Err), progressbar.OptionShowCount(),
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

// followJob prints the output of a job's one task, stdout to stdout and stderr to
// stderr, and waits for the end.
func followJob(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	_, missing, err := followTask(ctx, a, c, id)
	if err != nil {
		return err
	}
	job, err := awaitJob(ctx, a, c, id)
	if err == nil {
		err = jobError(id, job)
	}
	if err != nil || !missing {
		return err
	}
	return incomplete(id)
}
