package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/linear"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// retryEvery is how long a client waits before it sends a request again.
const retryEvery = 250 * time.Millisecond

// order is a planned order with what its client was told. Its fields below the
// plan are guarded by the run's mu.
type order struct {
	plan.Order

	ids     [][]string // by job: of every acknowledgement
	refused string
	cancel  bool // a cancel was sent
	// cancelled is the entry at which it was acknowledged, 0 = it was not.
	cancelled uint64
}

// track makes an order part of the run.
func (r *run) track(o plan.Order) *order {
	tracked := &order{Order: o, ids: make([][]string, len(o.Jobs))}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders = append(r.orders, tracked)
	return tracked
}

// place sends an order until it is acknowledged, then does what the plan says.
func (r *run) place(ctx context.Context, o *order) {
	r.say("%s", o.Order)
	if !r.awaitEarlier(ctx, o) || !r.untilAcknowledged(ctx, o) {
		return
	}
	var holder sync.WaitGroup
	defer holder.Wait()
	if o.HoldFor > 0 {
		holder.Go(func() { r.holdForAWhile(ctx, o) })
	}
	if o.Again {
		r.untilAcknowledged(ctx, o)
	}
	if o.CancelAfter > 0 && sleep(ctx, o.CancelAfter) == nil {
		r.cancelOne(ctx, o)
	}
}

// untilAcknowledged repeats the same request under the same key at the same
// broker until every job has an id.
func (r *run) untilAcknowledged(ctx context.Context, o *order) bool {
	m := r.members[o.Site-1]
	for {
		if err := m.sendInput(ctx, o); err != nil {
			if sleep(ctx, retryEvery) != nil {
				return false
			}
			continue
		}
		calls := r.callSubmit(m, o)
		answers, err := m.send(ctx, o.Key, r.specs(o))
		for i, a := range answers {
			if a.ID != "" {
				r.acknowledged(o, i, calls[i], a)
			}
		}
		if refusal(err) {
			r.mu.Lock()
			o.refused = err.Error()
			r.mu.Unlock()
		}
		if err == nil || refusal(err) {
			return err == nil
		}
		if sleep(ctx, retryEvery) != nil {
			return false
		}
	}
}

// callSubmit notes that an order is being sent, each job by itself.
func (r *run) callSubmit(m *member, o *order) []*linear.Pending {
	var out []*linear.Pending
	for _, j := range o.Jobs {
		out = append(out, r.history.Call(linear.Op{Kind: linear.Submit, At: m.Name, Owner: m.Name, Job: j.Name}))
	}
	return out
}

// acknowledged notes the id that a client was told for a job of its order.
func (r *run) acknowledged(o *order, i int, call *linear.Pending, a testbed.Accepted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.ids[i] = append(o.ids[i], a.ID)
	call.Return(func(op *linear.Op) { op.ID, op.Durable = a.ID, a.Durability == "federation" })
}

// refusal reports whether an answer is one that repeating does not mend.
func refusal(err error) bool {
	var he *testbed.HTTPError
	return errors.As(err, &he) && he.Status < 500 && he.Status != http.StatusTooManyRequests
}

// send places the jobs: one as JSON, several as lines. A job that was not
// acknowledged has the id "", and then there is an error.
func (m *member) send(ctx context.Context, key string, specs []testbed.Spec) ([]testbed.Accepted, error) {
	if len(specs) == 1 {
		a, err := m.SubmitKeyed(ctx, key, specs[0])
		if err == nil && a.ID == "" {
			err = fmt.Errorf("%s accepted %s without an id", m.Name, key)
		}
		return []testbed.Accepted{a}, err
	}
	var body bytes.Buffer
	for _, s := range specs {
		if err := json.NewEncoder(&body).Encode(s); err != nil {
			return nil, fmt.Errorf("encode spec: %w", err)
		}
	}
	header := http.Header{"Content-Type": {"application/x-ndjson"}, "Idempotency-Key": {key}}
	data, _, err := m.Do(ctx, http.MethodPost, "/v1/jobs", header, body.Bytes())
	if err != nil {
		return nil, err
	}
	return parseLines(data, len(specs))
}

// resultLine is an id or a problem.
type resultLine struct {
	testbed.Accepted

	Status int
}

// parseLines reads the answer to n lines; it may have been cut short.
func parseLines(data []byte, n int) ([]testbed.Accepted, error) {
	var out []testbed.Accepted
	var err error
	for line := range bytes.Lines(data) {
		var res resultLine
		if e := json.Unmarshal(line, &res); e != nil {
			return out, fmt.Errorf("decode result line %d: %w", len(out)+1, e)
		}
		out = append(out, res.Accepted)
		if res.ID == "" && err == nil { // a later line may be refused because this one was
			err = &testbed.HTTPError{Status: res.Status, Body: string(line)}
		}
	}
	if err == nil && len(out) != n {
		err = fmt.Errorf("%d result lines for %d jobs", len(out), n)
	}
	return out, err
}

// specs of an order's jobs: the same bytes each time.
func (r *run) specs(o *order) []testbed.Spec {
	var out []testbed.Spec
	for _, j := range o.Jobs {
		s := r.spec(j, r.members[o.Site-1].Name)
		s.After = r.waitsOf(o, j)
		out = append(out, s)
	}
	return out
}

func (r *run) spec(j plan.Job, owner string) testbed.Spec {
	s := testbed.Spec{
		Name: j.Name, Count: j.Count, Parallel: j.Parallel,
		Command: []string{r.marker, "-for", j.Length.String()},
		Retry:   retryOf(j),
	}
	if j.Stubborn {
		s.Command = append(s.Command, "-stubborn")
	}
	if j.Hostile {
		s.Command = append(s.Command, "-hostile")
		s.Sites = &testbed.Where{Not: []string{owner}}
	}
	if j.Files {
		s.Command = append(s.Command, "-files")
		s.Inputs, s.Outputs = filesOf()
	}
	if j.Exit != 0 {
		s.Command = append(s.Command, "-exit", fmt.Sprint(j.Exit))
	}
	if j.FailTask > 0 {
		s.Command = append(s.Command, "-alone", fmt.Sprint(j.FailTask-1))
	}
	if j.First > 0 {
		s.Command = append(s.Command, "-first", j.First.String())
	}
	s.Command = append(s.Command, r.marks)
	if j.Home {
		s.Sites = &testbed.Where{Only: []string{owner}}
	}
	if j.Env > 0 {
		s.Env = map[string]string{"LARGE": strings.Repeat("x", j.Env)}
	}
	if j.Sites != nil {
		s.Sites = &testbed.Where{}
		for _, n := range j.Sites {
			s.Sites.Only = append(s.Sites.Only, r.members[n-1].Name)
		}
	}
	return s
}

// cancelOne cancels the job of an order that is to be, at the broker that took it, until
// that is acknowledged.
func (r *run) cancelOne(ctx context.Context, o *order) {
	job := o.Jobs[o.CancelJob].Name
	r.mu.Lock()
	id := o.ids[o.CancelJob][0]
	o.cancel = true
	r.mu.Unlock()
	r.say("cancel %s (%s)", id, job)
	m := r.members[o.Site-1]
	for {
		call := r.history.Call(linear.Op{Kind: linear.Cancel, At: m.Name, Owner: m.Name, Job: job, ID: id})
		index, err := m.CancelAt(ctx, id)
		if err == nil {
			r.mu.Lock()
			o.cancelled = index
			r.mu.Unlock()
		}
		var he *testbed.HTTPError
		if err == nil || errors.As(err, &he) && he.Status == http.StatusConflict {
			call.Return(func(*linear.Op) {})
			return
		}
		if refusal(err) {
			r.violated(check.NoError, "cancel %s at its owner: %s", id, err)
			return
		}
		if sleep(ctx, retryEvery) != nil {
			return
		}
	}
}

// ordered returns what the checker looks at.
func (r *run) ordered() []check.Ordered {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []check.Ordered
	for _, o := range r.orders {
		for i, j := range o.Jobs {
			cancelled := o.cancelled
			if i != o.CancelJob {
				cancelled = 0
			}
			most, barred := tries(j)
			out = append(out, check.Ordered{
				Name: j.Name, Owner: r.members[o.Site-1].Name, OnLoss: j.OnLoss, Count: j.Count, Exit: j.Exit,
				Tries: most, Barred: barred, Files: j.Files,
				After: r.waitedFor(j), Parallel: j.Parallel, Backoff: j.Backoff,
				IDs: slices.Clone(o.ids[i]), Cancel: o.cancel && i == o.CancelJob, Cancelled: cancelled,
				Refused: o.refused,
			})
		}
	}
	return out
}
