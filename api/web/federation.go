package web

import (
	"net/http"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// federationView is the first page: who is there and what their machines do.
type federationView struct {
	Status node.Status
	// LeaderWhy says why the leader is where it is; "" if that is not known here.
	LeaderWhy string
	Ready     string // "" or why the broker is not ready
	Sites     []siteRow
	// Sums over present sites, in milli-cores.
	Capacity, Offered, Lent, Home int64
	Present, Known                int
	Waiting                       uint64 // tasks
	Use                           bar
	Policy                        string
	Seen                          node.Plausibility
	Files                         []node.SpaceUse // of this site; nil: it keeps none
}

// StandsOut reports whether something is said of a site.
func (v *federationView) StandsOut() bool {
	return slices.ContainsFunc(v.Seen.Sites, func(s node.SitePlausibility) bool { return len(s.Notes) > 0 })
}

type siteRow struct {
	node.Site
	State   string
	Leader  bool
	Here    bool
	Present bool
	Bar     bar
}

func (p *Pages) federation(_ *http.Request, _ func(string) string) (view, error) {
	v := federationView{
		Status: p.cfg.Source.Status(false), Policy: p.cfg.Source.Params().Policy, Seen: p.cfg.Source.Plausibility(),
		Files: p.cfg.Source.FilesUse(),
	}
	v.LeaderWhy = node.LeaderWords(v.Status.Lead, v.Status.Placement)
	if err := p.cfg.Source.Ready(); err != nil {
		v.Ready = err.Error()
	}
	for _, s := range p.cfg.Source.Sites() {
		row := siteRow{
			Site: s, State: s.State.String(), Leader: s.ID == v.Status.Lead, Here: s.ID == v.Status.Site,
			Bar:     siteBar(s.SiteView),
			Present: s.State == fsm.Alive || s.State == fsm.Suspected,
		}
		v.Sites = append(v.Sites, row)
		v.Known++
		if row.Present {
			v.add(s.SiteView)
		}
	}
	for _, q := range p.cfg.Source.Queue() {
		v.Waiting += q.Waiting
	}
	whole := max(v.Capacity, v.Home+v.Offered)
	v.Use = stack("cores of the federation", whole,
		amount{v.Lent, "fill-lent", coresWords(v.Lent) + " at work for the federation"},
		amount{v.Home, "fill-home", coresWords(v.Home) + " at work for their own site's jobs"},
		amount{v.Offered - v.Lent, "fill-free", coresWords(v.Offered-v.Lent) + " offered and free"},
		amount{whole - v.Offered - v.Home, "fill-kept", coresWords(whole-v.Offered-v.Home) + " kept back"})
	return view{template: "federation", data: &v}, nil
}

// AtWork returns the cores that run anything, in milli-cores.
func (v *federationView) AtWork() int64 { return v.Lent + v.Home }

func (v *federationView) add(s fsm.SiteView) {
	v.Present++
	v.Capacity += s.Capacity.MilliCPU
	v.Offered += max(s.Exposed.MilliCPU, s.Assigned.MilliCPU)
	v.Lent += s.Assigned.MilliCPU
	v.Home += s.Home.MilliCPU
}
