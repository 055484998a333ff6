package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// watchEvery is how often every broker is asked for its state and ledger.
const watchEvery = 700 * time.Millisecond

// watch asks all brokers as long as the run lasts. A broker that does not
// answer is no violation: it may be dead.
func (r *run) watch(ctx context.Context) {
	ctx, r.watching = context.WithCancel(ctx)
	for _, m := range r.honest() {
		r.watched.Go(func() {
			sure := false
			every(ctx, readEvery, func() {
				sure = !sure
				_, _ = r.policy(ctx, m, sure)
			})
		})
		r.watched.Go(func() {
			tick := time.NewTicker(watchEvery)
			defer tick.Stop()
			for sure := false; ; sure = !sure {
				select {
				case <-ctx.Done():
					return
				case text := <-r.ended:
					r.violated(check.NoPanic, "%s", text)
				case <-tick.C:
					r.look(ctx, m, sure)
				}
			}
		})
	}
}

// look at one broker; sure: its list of jobs is to be confirmed.
func (r *run) look(ctx context.Context, m *member, sure bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r.seeState(ctx, m)
	if l, err := m.ledger(ctx); err == nil {
		r.blame(l.Zero()...)
	}
	asked, call := r.asking(), r.history.Now()
	query := ""
	if sure {
		query = confirmed
	}
	if jobs, err := m.jobs(ctx, query); err == nil {
		r.seen(m, call, asked, jobs, sure)
		for _, j := range jobs {
			if !r.honesty().Is(j.Site) {
				continue
			}
			r.mu.Lock()
			found := r.steady.See(m.Name, j.ID, j.State)
			r.mu.Unlock()
			r.blame(found...)
		}
	}
}

// leadName asks the brokers until one knows who leads.
func (r *run) leadName(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for _, m := range r.members {
		if r.faults.on(m) {
			continue
		}
		if st, err := m.Status(ctx); err == nil && st.Leader != "" {
			return st.Leader
		}
	}
	return ""
}

// foreignTasks counts the tasks that run at each site for others.
func (r *run) foreignTasks(ctx context.Context) map[string]int {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	out := map[string]int{}
	for _, m := range r.members {
		if r.faults.on(m) {
			continue
		}
		jobs, err := m.Jobs(ctx, "state=running&limit=200")
		if err != nil {
			continue
		}
		for _, j := range jobs {
			tasks, err := m.Tasks(ctx, j.ID)
			if err != nil {
				continue
			}
			for _, t := range tasks {
				if t.State == "running" && t.Site != j.Site {
					out[t.Site]++
				}
			}
		}
		break
	}
	return out
}

// readLogs looks for what no broker should write.
func (r *run) readLogs() {
	for _, m := range r.honest() {
		f, err := os.Open(filepath.Join(m.Dir, "broker.log"))
		if err != nil {
			continue // it was never started
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if found := check.Differs(m.Name, lines.Text()); len(found) > 0 && !r.forks {
				r.blame(found...)
				break
			}
			if line := lines.Text(); strings.Contains(line, "panic") || strings.Contains(line, "fatal error:") || strings.Contains(line, "DATA RACE") {
				r.violated(check.NoPanic, "log of %s: %s", m.Name, line)
				break
			}
		}
		f.Close()
	}
}

// ledger in the form that is checked.
func (m *member) ledger(ctx context.Context) (check.Ledger, error) {
	l, err := m.Ledger(ctx)
	if err != nil {
		return check.Ledger{}, err
	}
	out := check.Ledger{Broker: m.Name, Index: l.Index, Priorities: map[string]string{}}
	for _, a := range l.Sites {
		out.Priorities[a.Site] = a.Priority
	}
	for _, c := range l.Matrix {
		out.Matrix = append(out.Matrix, check.Cell{Owner: c.Owner, Executor: c.Executor, Tasks: c.Tasks, A: c.A})
	}
	return out, nil
}

// jobs lists all that the broker knows.
func (m *member) jobs(ctx context.Context, query string) ([]testbed.Job, error) {
	return m.AllJobs(ctx, query)
}
