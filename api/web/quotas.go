package web

import (
	"cmp"
	"context"

	"github.com/cloudshare/cloudshare/node"
)

// quotasView is what a user has open, may have, and how far that waits for the user's turn.
type quotasView struct {
	Rows        []quotaRow
	Tasks, Held uint64
	Shares      uint64
	CoreHours   float64 // of late: what counts when users take turns
	From        string  // whose limits these are
	Unknown     string  // why none of this is known, "" = it is
}

// quotaRow is one quota. Used is "" if nothing is counted.
type quotaRow struct{ What, Used, Most string }

// limitsFrom words where a user's limits are from.
var limitsFrom = map[string]string{
	node.LimitsByCommand:       "The operator has set your limits.",
	node.LimitsByConfiguration: "Your limits are from the broker's configuration.",
	node.LimitsOfEverybody:     "Your limits are those of all users.",
}

// quotas tells of one user.
func (p *Pages) quotas(ctx context.Context, user string) *quotasView {
	u, err := p.cfg.People.Use(ctx, user)
	if err != nil {
		return &quotasView{Unknown: p.words(err)}
	}
	most := func(limit uint64, words func(uint64) string) string {
		if limit == 0 {
			return "any"
		}
		return words(limit)
	}
	number := func(n uint64) string { return count(n) }
	millis := func(n uint64) string { return cores(int64(n)) }
	return &quotasView{
		Rows: []quotaRow{
			{"Tasks that have not ended", number(u.Tasks), most(u.Limits.Tasks, number)},
			{"Cores that these need", millis(u.MilliCPU), most(u.Limits.MilliCPU, millis)},
			{"Bytes of these jobs", number(u.Bytes), most(u.Limits.Bytes, number)},
			{"Jobs in a minute", "", most(u.Limits.JobsPerMinute, number)},
		},
		Tasks: u.Tasks, Held: u.Held, Shares: cmp.Or(u.Limits.Shares, 1),
		CoreHours: float64(u.CoreSeconds) / 3600, From: limitsFrom[u.From],
	}
}
