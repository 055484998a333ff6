package web

import (
	"cmp"
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

// shownWaiting is how many waiting jobs the page shows.
const shownWaiting = 20

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
	jobs, _, err := p.search(r.Context(), node.JobQuery{State: "queued", Limit: shownWaiting})
	v.Jobs = rowsOf(jobs, p.cfg.Now())
	return view{template: "queue", data: v}, err
}

// direct reports whether a policy has the site with the greatest priority go
// first.
func direct(policy string) bool {
	return policy == "SIMPL_DIRECT" || policy == "ORIG_DIRECT" || policy == "REL_DIRECT"
}
