package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// waitsOf names what a job of an order waits for: lines of the same request, or earlier jobs.
func (r *run) waitsOf(o *order, j plan.Job) (out []testbed.After) {
	for _, w := range j.After {
		name := ""
		if i := slices.IndexFunc(o.Jobs, func(x plan.Job) bool { return x.Name == w.Job }); i >= 0 {
			name = fmt.Sprintf("#%d", i+1)
		} else {
			r.mu.Lock()
			name = r.idOf(w.Job)
			r.mu.Unlock()
		}
		out = append(out, testbed.After{Job: name, When: w.When})
	}
	return out
}

// waitedFor is waitsOf for the checker, by ids.
//
// REQUIRES: r.mu is held.
func (r *run) waitedFor(j plan.Job) (out []check.Wait) {
	for _, w := range j.After {
		out = append(out, check.Wait{Job: r.idOf(w.Job), When: w.When})
	}
	return out
}

// idOf returns the id of the job of that name, "" if its client has none yet; a name that no order has is an id.
//
// REQUIRES: r.mu is held.
func (r *run) idOf(name string) string {
	for _, o := range r.orders {
		for i, j := range o.Jobs {
			switch {
			case j.Name != name:
			case len(o.ids[i]) == 0:
				return ""
			default:
				return o.ids[i][0]
			}
		}
	}
	return name
}

// awaitEarlier waits until the clients of the jobs that an order's wait for have their ids.
func (r *run) awaitEarlier(ctx context.Context, o *order) bool {
	missing := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(o.Jobs, func(j plan.Job) bool {
			return slices.ContainsFunc(j.After, func(w plan.Wait) bool {
				own := slices.ContainsFunc(o.Jobs, func(x plan.Job) bool { return x.Name == w.Job })
				return !own && r.idOf(w.Job) == ""
			})
		})
	}
	for missing() {
		if sleep(ctx, retryEvery) != nil {
			return false
		}
	}
	return true
}

// holdForAWhile holds a job of an order by hand, and lets it go.
func (r *run) holdForAWhile(ctx context.Context, o *order) {
	r.mu.Lock()
	id := o.ids[o.HoldJob][0]
	r.mu.Unlock()
	if sleep(ctx, o.HoldAfter) == nil && r.setHold(ctx, o, id, true) && sleep(ctx, o.HoldFor) == nil {
		r.setHold(ctx, o, id, false)
	}
}

// setHold has the owner's broker hold a job, or let it go, until that is acknowledged; false: it has ended, or the
// client has.
func (r *run) setHold(ctx context.Context, o *order, id string, hold bool) bool {
	m := r.members[o.Site-1]
	r.say("hold %s (%s): %t", id, o.Jobs[o.HoldJob].Name, hold)
	for {
		err := m.SetHold(ctx, id, hold)
		var he *testbed.HTTPError
		switch {
		case err == nil:
			return true
		case errors.As(err, &he) && he.Status == http.StatusConflict:
			return false
		case refusal(err):
			r.violated(check.NoError, "hold %s at its owner: %s", id, err)
			return false
		case sleep(ctx, retryEvery) != nil:
			return false
		}
	}
}

// tries returns how many failures a job's tasks may have, by their exit code, and whether that bars another one.
func tries(j plan.Job) (most int, barred bool) {
	if j.OnlyOn > 0 && j.OnlyOn != j.Exit {
		return 1, true
	}
	return j.Tries, false
}

// retryOf returns the part of a spec that says how tasks are tried again.
func retryOf(j plan.Job) *testbed.Retry {
	out := &testbed.Retry{MaxAttempts: j.Tries, OnLoss: j.OnLoss}
	if j.Backoff > 0 {
		out.Backoff = j.Backoff.Round(time.Millisecond).String()
	}
	if j.OnlyOn > 0 {
		out.OnlyOn = []string{fmt.Sprint(j.OnlyOn)}
	}
	return out
}
