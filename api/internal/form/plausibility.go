package form

import (
	"math"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// Plausibility returns the form of what a broker has seen of sites' reports.
func Plausibility(p node.Plausibility) wire.Plausibility {
	out := wire.Plausibility{
		HalfLifeSeconds: p.HalfLife.Seconds(), Sites: make([]wire.SitePlausibility, 0, len(p.Sites)),
	}
	if !p.Since.IsZero() {
		since := p.Since.UTC().Truncate(time.Second)
		out.Since = &since
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		v := wire.SitePlausibility{
			Site: s.Site, Notes: full(s.Notes), Runs: rounded(s.Runs), Beyond: rounded(s.Beyond),
			ExcessSeconds: rounded(s.Excess.Seconds()), Declined: rounded(s.Declined), Unstarted: rounded(s.Unstarted),
			Lent: rounded(s.Lent), Ran: rounded(s.Ran), Idle: rounded(s.Idle),
		}
		if c := &s.Slowness; c.Factor > 0 {
			v.Slowness = &wire.Slowness{
				Factor: rounded(c.Factor), AtLeast: rounded(c.AtLeast), Tasks: rounded(c.Tasks),
				Elsewhere: rounded(c.Elsewhere), Jobs: rounded(c.Jobs), Owners: c.Owners,
			}
		}
		out.Sites = append(out.Sites, v)
	}
	return out
}

// rounded leaves three decimals: more are noise.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
