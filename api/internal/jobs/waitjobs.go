package jobs

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// registerWait adds GET /v1/wait.
func (j *Jobs) registerWait() {
	jobs := rest.ListParam("job", "SITE.NUMBER; may be repeated, at most 1000 times")
	j.api.Handle(huma.Operation{
		OperationID: "wait", Method: http.MethodGet, Path: reads.WaitPath, Summary: "Wait until jobs have ended",
		Description: "Answered once all the jobs have ended, or after wait: one item per job, in order, and whether all have ended. " +
			"A job that is not known, or is another user's, and what cannot be asked, has a problem instead of a state; the latter does not count as ended.",
		Parameters: []*huma.Param{jobs, rest.QueryParam("wait", huma.TypeString, "answer after this time at the latest, e.g. 30s; default and most 5m")},
		Responses:  j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Waited{}), 400, 503),
	}, j.waitJobs)
}

func (j *Jobs) waitJobs(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	list, err := targets(r, false)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return problem.BadQuery("job", "", "is missing: name the jobs to wait for")
	}
	_, _, wait, err := j.reads.WaitQuery(r)
	if err != nil {
		return err
	}
	ctx, leave, err := j.reads.Stay(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, done := context.WithTimeout(ctx, wait)
	defer done()
	v := &jobWait{of: j, list: list, items: make([]wire.WaitedJob, len(list)), open: map[command.JobID]int{}}
	v.run(ctx, r)
	if err = problem.Ended(r.Context()); err != nil {
		return err
	}
	j.reads.Restamp(r.Context())
	out := wire.Waited{Items: v.items, Done: true, Freshness: reads.Freshness(r.Context())}
	for i := range v.items {
		out.Done = out.Done && v.items[i].Over
	}
	return rest.WriteJSON(w, http.StatusOK, out)
}

// jobWait is one request that waits for jobs.
type jobWait struct {
	of    *Jobs
	list  []target
	items []wire.WaitedJob      // by place in the list
	open  map[command.JobID]int // jobs that this broker knows and that have not ended
	away  peers.Others
}

// run fills the items until all jobs have ended, or ctx ends.
func (v *jobWait) run(ctx context.Context, r *http.Request) {
	b := v.of.broker
	// Before the first look: no end falls in between.
	sub := b.Events(b.Feed().Now(), node.EventFilter{Kinds: map[fsm.EventKind]bool{fsm.EventJobEnded: true}})
	for i := range v.list {
		v.away.AddTarget(i, v.checkJob(r.Context(), i))
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		v.away.AskEach(func(e *peers.Share) { v.askOther(ctx, r, e) })
	}()
	for len(v.open) > 0 {
		events, err := sub.Next(ctx)
		if err != nil && !errors.Is(err, node.ErrEventsLost) {
			break
		}
		for k := range events {
			if i, waited := v.open[events[k].Job]; waited {
				_ = v.checkJob(r.Context(), i) // its item says it
			}
		}
		if err != nil {
			v.lookAgain(r.Context())
		}
	}
	v.lookAgain(r.Context()) // as they are now
	<-asked
}

// lookAgain looks at all jobs that have not ended.
func (v *jobWait) lookAgain(ctx context.Context) {
	for _, i := range v.open {
		_ = v.checkJob(ctx, i) // its item says it
	}
}

// checkJob shows a job as it is, and forgets it if there is nothing to wait for. The
// error is why it cannot be shown.
func (v *jobWait) checkJob(ctx context.Context, i int) error {
	id := v.list[i].Job
	item := wire.WaitedJob{Job: v.list[i].text}
	job, err := v.of.broker.Job(ctx, id)
	if err != nil {
		item.Problem, item.Over = &problem.Logged(v.of.log, err).Problem, isFinal(err)
	} else {
		item.State, item.Reason, item.Counts, item.EndedAt = job.State, job.Reason, job.Counts, form.Moment(job.EndedAt)
		state, _ := fsm.ParseTaskState(job.State)
		item.Over = state.Ended()
	}
	v.items[i] = item
	if err == nil && !item.Over {
		v.open[id] = i
	} else {
		delete(v.open, id)
	}
	return err
}

// isFinal reports whether asking again would be answered alike: there is no such job, or it is another user's.
func isFinal(err error) bool {
	return errors.Is(err, node.ErrNotFound) || errors.Is(err, node.ErrNotOwner)
}

// askOther has another broker wait for its jobs.
func (v *jobWait) askOther(ctx context.Context, r *http.Request, e *peers.Share) {
	query := url.Values{}
	for _, i := range e.Jobs {
		query.Add("job", v.list[i].text)
	}
	if until, ok := ctx.Deadline(); ok {
		query.Set("wait", max(0, time.Until(until)).Round(time.Millisecond).String())
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), reads.MaxWait+v.of.peers.Timeout())
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	answer, err := peers.AskSame[wire.Waited](patient, v.of.peers, r, e.At, query)
	for k, i := range e.Jobs {
		switch {
		case err != nil:
			v.items[i] = wire.WaitedJob{Job: v.list[i].text, Problem: &problem.Of(err).Problem}
		case k < len(answer.Items):
			v.items[i] = answer.Items[k]
		}
	}
}
