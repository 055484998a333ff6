package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// workflowSteps of the section, each with its own stop in time: what takes longer than that is left out, and what
// comes behind it is measured all the same. Together they are the section's limit.
var workflowSteps = []struct {
	name  string
	run   func(ctx context.Context, env environment, t *table) error
	limit time.Duration
}{
	{"chains", measureChains, 42 * time.Second},
	{"fans", measureFans, 76 * time.Second},
	{"tasks of workflow engines", measureTES, 22 * time.Second},
	{"held jobs", measureHeld, 40 * time.Second},
}

// measureWorkflows compares jobs that wait for others with such that do not, and submissions of workflow engines with
// the API's own.
func measureWorkflows(ctx context.Context, env environment, t *table) error {
	var errs []error
	for _, step := range workflowSteps {
		sub, cancel := context.WithTimeoutCause(ctx, step.limit, fmt.Errorf("not done within %s", step.limit))
		if err := step.run(sub, env, t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.name, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// ended is the end of a job as a user's program hears of it.
type ended struct {
	event
	at time.Time
}

// endings is a stream of the ends of a site's jobs.
type endings struct {
	ends  chan ended
	ctx   context.Context //nolint:containedctx // that of the stream, which ends before the step does
	leave func()
}

// mostEndings are kept that nobody has asked for yet.
const mostEndings = 1 << 15

// followEnds returns once the stream stands.
func followEnds(ctx context.Context, s *testbed.Site) (*endings, error) {
	ctx, leave := context.WithCancelCause(ctx)
	e := &endings{ends: make(chan ended, mostEndings), ctx: ctx}
	transport := &http.Transport{DisableCompression: true, DialContext: s.Dial}
	stands, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		err := follow(ctx, transport, s, "kind=job.ended", func() { close(stands) }, func(ev event) bool {
			select {
			case e.ends <- ended{ev, time.Now()}:
			case <-ctx.Done():
			}
			return ctx.Err() == nil
		})
		leave(fmt.Errorf("%w: %w\n%s", errBrokenOff, err, s.LogTail(5)))
	}()
	e.leave = func() {
		leave(nil)
		<-over
		transport.CloseIdleConnections()
	}
	<-stands
	if ctx.Err() != nil {
		e.leave()
		return nil, fmt.Errorf("follow the ends of jobs: %w", context.Cause(ctx))
	}
	return e, nil
}

// next waits for the next end.
func (e *endings) next() (ended, error) {
	select {
	case end := <-e.ends:
		return end, nil
	case <-e.ctx.Done():
		return ended{}, context.Cause(e.ctx)
	}
}

// of waits for the end of a job that is to succeed, and passes over others'.
func (e *endings) of(id string) (at time.Time, err error) {
	for {
		end, err := e.next()
		switch {
		case err != nil:
			return at, fmt.Errorf("await the end of job %s: %w", id, err)
		case end.Job != id:
			continue
		case end.Outcome != "succeeded":
			return at, fmt.Errorf("job %s: %s", id, end.Outcome)
		}
		return end.at, nil
	}
}
