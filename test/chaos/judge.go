package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// Progress that is promised once everything is healed, on the LAN profile with
// both cores of this machine busy.
const (
	// agreeWithin: every broker acknowledges a job, committed by the quorum.
	agreeWithin = 15 * time.Second
	// endWithin, besides what the waiting work itself takes.
	endWithin = 30 * time.Second
	// probeWithin: a job at an idle federation succeeds.
	probeWithin = 10 * time.Second
)

// settle waits, after healing, until all clients have their answers and all
// jobs their ends.
func (r *run) settle(ctx context.Context, clients *sync.WaitGroup, stopClients context.CancelFunc) {
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(agreeWithin):
		stopClients()
		<-done
	}
	r.say("all clients are done")
	within := endWithin + r.work()/time.Duration(len(r.members)*r.cores)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s of healing", within.Round(time.Second)))
	defer cancel()
	for _, o := range r.honesty().Ordered(r.ordered()) {
		for _, id := range o.IDs {
			if err := r.awaitEnd(ctx, o, id); err != nil {
				r.violated(check.Progress, "%s (%s): %s", id, o.Name, err)
			}
		}
	}
	r.say("all jobs have ended")
	r.settleFiles(ctx)
}

// work is what all orders need together, tried twice.
func (r *run) work() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum time.Duration
	for _, o := range r.orders {
		for _, j := range o.Jobs {
			sum += 2 * time.Duration(j.Count) * j.Length
		}
	}
	return sum
}

func (r *run) byName(name string) *member {
	return r.members[slices.IndexFunc(r.members, func(m *member) bool { return m.Name == name })]
}

func (r *run) awaitEnd(ctx context.Context, o check.Ordered, id string) error {
	_, err := r.byName(o.Owner).AwaitJob(ctx, id, check.Ends()...)
	return err
}

// judge looks at everything once more and checks all promises.
func (r *run) judge(ctx context.Context) error {
	r.probe(ctx)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.agree(ctx); err != nil {
		r.violated(check.SameState, "%s", err)
	} else if err := r.lastReads(ctx); err != nil {
		return err
	}
	if err := r.linearizable(); err != nil {
		return err
	}
	marks, err := r.honestMarks()
	if err != nil {
		return err
	}
	shown, err := r.shown(ctx)
	if err != nil {
		return fmt.Errorf("ask for the jobs: %w", err)
	}
	if err := r.keep("shown.json", shown); err != nil {
		return err
	}
	orders := r.honesty().Ordered(r.ordered())
	r.blame(check.Acknowledged(orders)...)
	r.blame(check.Known(orders, shown)...)
	r.blame(check.Strangers(shown, marks)...)
	owners := map[string]string{}
	flow := check.NewFlow(orders, shown, marks)
	for _, o := range orders {
		o.Vain = flow.Vain(o)
		for _, id := range slices.Compact(slices.Clone(o.IDs)) {
			owners[id] = o.Owner
			r.blame(check.Tasks(o, id, marks)...)
			r.blame(flow.Judge(o, id)...)
			if i := slices.IndexFunc(shown, func(s check.Shown) bool { return s.ID == id }); i >= 0 {
				r.blame(r.honesty().End(o, shown[i], marks)...)
				results, err := r.results(ctx, o, shown[i])
				if err != nil {
					r.violated(check.Delivered, "%s", err)
				}
				r.blame(r.honesty().Results(o, shown[i], results)...)
			}
		}
	}
	r.blame(r.recount(ctx, owners, shown, marks)...)
	r.say("%d jobs, %d attempts, states of %d entries compared", len(shown), len(marks.All()), r.hashes.Compared())
	return nil
}

// keep writes what was found beside the logs, for whoever looks into a failure.
func (r *run) keep(name string, what any) error {
	data, err := json.MarshalIndent(what, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, name), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// usageWithin is how long home runs may take to reach the ledger: they are
// reported afterwards, in batches.
const usageWithin = 10 * time.Second

// recount compares every broker's ledger with the runs, until it has them all.
func (r *run) recount(ctx context.Context, owners map[string]string, shown []check.Shown,
	marks check.Marks,
) []check.Violation {
	ctx, cancel := context.WithTimeoutCause(ctx, usageWithin, fmt.Errorf("not within %s", usageWithin))
	defer cancel()
	var found []check.Violation
	err := testbed.Await(ctx, "full ledgers", func() error {
		var now []check.Violation
		for _, m := range r.honest() {
			l, err := m.ledger(ctx)
			if err != nil {
				return err // what the last whole look found stands
			}
			l = r.honesty().Ledger(l)
			now = append(append(now, l.Zero()...), l.Recount(owners, shown, marks)...)
		}
		if found = now; len(found) > 0 {
			return errFound
		}
		return nil
	})
	if err != nil && len(found) == 0 {
		found = append(found, check.Violation{Rule: check.Progress, Text: err.Error()})
	}
	return found
}

// probe has every site take a job and see it succeed.
func (r *run) probe(ctx context.Context) {
	for _, m := range r.honest() {
		o := r.track(plan.Order{At: time.Since(r.began), Site: r.number(m), Key: "probe-" + m.Name, Jobs: []plan.Job{{
			Name: "probe-" + m.Name, Count: 1, Length: 10 * time.Millisecond, OnLoss: check.Fenced, Tries: 1,
		}}})
		within, cancel := context.WithTimeoutCause(ctx, probeWithin, fmt.Errorf("not within %s", probeWithin))
		began := time.Now()
		if r.untilAcknowledged(within, o) {
			job, err := m.AwaitJob(within, o.ids[0][0], check.Ends()...)
			switch {
			case err != nil:
				r.violated(check.Progress, "probe: %s", err)
			case job.State != "succeeded":
				r.violated(check.Progress, "probe %s of %s ended as %s (%s)", job.ID, m.Name, job.State, job.Reason)
			}
		}
		cancel()
		r.say("probe at %s took %s", m.Name, time.Since(began).Round(time.Millisecond))
	}
}

// agree waits until all brokers show the state of the same entry.
func (r *run) agree(ctx context.Context) error {
	var sites []*testbed.Site
	for _, m := range r.honest() {
		sites = append(sites, m.Site)
	}
	return testbed.AwaitEqualState(ctx, sites...)
}

// shown collects every job: its tasks as its owner shows them, and that no
// other broker knows it by another end.
func (r *run) shown(ctx context.Context) ([]check.Shown, error) {
	byID := map[string]check.Shown{}
	for _, m := range r.honest() {
		jobs, err := m.jobs(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			if !r.honesty().Is(j.Site) {
				continue
			}
			r.blame(r.steady.See(m.Name, j.ID, j.State)...)
			if j.Site != m.Name {
				continue
			}
			tasks, err := m.Tasks(ctx, j.ID)
			if err != nil {
				return nil, err
			}
			byID[j.ID] = check.Shown{ID: j.ID, Name: j.Name, State: j.State, Tasks: shownTasks(tasks)}
		}
	}
	var out []check.Shown
	for _, s := range byID {
		out = append(out, s)
	}
	return out, nil
}

func shownTasks(tasks []testbed.Task) []check.ShownTask {
	var out []check.ShownTask
	for _, t := range tasks {
		s := check.ShownTask{
			Index: t.Index, State: t.State, Reason: t.Reason, Site: t.Site, Attempt: t.Attempt, RunMs: -1,
			ExitCode: t.ExitCode, Away: t.FilesAway.Why,
		}
		token, err := t.Token.Int64()
		if err == nil {
			s.Token = uint64(token)
		}
		if t.RunMs != nil {
			s.RunMs = *t.RunMs
		}
		out = append(out, s)
	}
	return out
}
