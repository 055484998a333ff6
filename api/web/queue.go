package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// queueView is what waits.
type queueView struct {
	Amounts amounts
	Policy  string
	Turns   bool // the rows are in the order of turns
	Rows    []queueRow
	Waiting uint64
	Jobs    []jobRow // newest of those that wait
}

type queueRow struct {
	fsm.QueueView
	Standing string
	Oldest   time.Duration // since its oldest was queued
	Bar      bar
}

const (
	// shownWaiting is how many waiting jobs the page shows.
	shownWaiting = 20
	// searchedRunning is among how many running jobs it looks for tasks that wait.
	searchedRunning = 500
)

func (p *Pages) queue(r *http.Request, _ func(string) string) (view, error) {
	ledger, params := p.cfg.Source.Ledger(), p.cfg.Source.Params()
	v := queueView{Amounts: amounts{params, ledger.Unit}, Policy: params.Policy, Turns: direct(params.Policy)}
	queue := p.cfg.Source.Queue()
	most := uint64(0)
	for _, q := range queue {
		v.Waiting += q.Waiting
		most = max(most, q.Waiting)
	}
	for _, q := range queue {
		v.Rows = append(v.Rows, queueRow{
			QueueView: q, Standing: v.Amounts.Standing(q.Priority),
			Oldest: time.Duration(max(0, ledger.TimeMs-q.OldestMs)) * time.Millisecond,
			Bar:    stack("waiting tasks of "+q.Site, int64(most), amount{int64(q.Waiting), "fill-queued", count(q.Waiting) + " tasks"}),
		})
	}
	if v.Turns {
		slices.SortStableFunc(v.Rows, func(a, b queueRow) int {
			return cmp.Compare(v.Amounts.standing(b.Priority), v.Amounts.standing(a.Priority))
		})
	}
	jobs, err := p.waiting(r.Context())
	v.Jobs = rowsOf(jobs, p.cfg.Now())
	return view{template: "queue", data: v}, err
}

// waiting returns the newest jobs with tasks that wait: none of them runs, or some
// do, as far as a search among the newest that run finds these.
func (p *Pages) waiting(ctx context.Context) ([]node.Job, error) {
	jobs, _, err := p.search(ctx, node.JobQuery{State: fsm.Queued.String(), Limit: shownWaiting})
	if err != nil {
		return nil, err
	}
	running, _, err := p.search(ctx, node.JobQuery{State: fsm.Running.String(), Limit: searchedRunning})
	if err != nil {
		return nil, err
	}
	for _, j := range running {
		if j.Counts[fsm.Queued.String()] > 0 {
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(a, b node.Job) int { return b.SubmittedAt.Compare(a.SubmittedAt) })
	return jobs[:min(len(jobs), shownWaiting)], nil
}

// direct reports whether a policy has the site with the greatest priority go
// first.
func direct(policy string) bool {
	return policy == "SIMPL_DIRECT" || policy == "ORIG_DIRECT" || policy == "REL_DIRECT"
}
