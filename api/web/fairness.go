package web

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/archive"
)

// fairnessView is the ledger for people.
type fairnessView struct {
	Amounts  amounts
	Policy   string
	Rows     []account
	Matrix   matrix
	Show     string // which measure the chart draws
	Measures []string
	Chart    chart
	Since    time.Time // of the first sample, zero if the chart shows its whole period
	Kept     bool      // samples are kept at all
}

// account is one site's row.
type account struct {
	Site                            string
	Contribution, Utility, Priority string
	Bar                             diverging
	Color                           int // of its line in the chart, 0 = none
}

// diverging is a bar to the left or right of the middle, in percent of half.
type diverging struct {
	X, W  int
	Class string
}

// measures that the chart can draw.
var measures = []string{"priority", "contribution", "utility"}

// chartPeriod is what the chart shows.
const chartPeriod = 24 * time.Hour

func (p *Pages) fairness(r *http.Request, _ func(string) string) (view, error) {
	ledger := p.cfg.Source.Ledger()
	params := p.cfg.Source.Params()
	v := fairnessView{
		Amounts: amounts{params, ledger.Unit}, Policy: params.Policy, Show: measures[0],
		Measures: measures, Kept: p.cfg.History != nil,
	}
	if show := r.URL.Query().Get("show"); slices.Contains(measures, show) {
		v.Show = show
	}
	v.Rows = v.standings(ledger.Sites)
	v.Matrix = matrixOf(v.Amounts, ledger)
	if v.Kept {
		now := p.cfg.Now()
		samples := p.cfg.History.Samples(now.Add(-chartPeriod))
		if len(samples) == 0 {
			v.Since = now
		} else if at := samples[0].At; now.Sub(at) < chartPeriod-time.Hour {
			v.Since = at
		}
		v.Chart = v.lines(append(samples, archive.SampleOf(ledger, now)))
		v.paint()
	}
	return view{template: "fairness", data: v}, nil
}

// standings returns the sites sorted by who goes first.
func (v *fairnessView) standings(sites []fsm.AccountView) []account {
	most := 0.0
	for _, a := range sites {
		n := v.Amounts.standing(a.Priority)
		most = max(most, n, -n)
	}
	sites = slices.Clone(sites)
	slices.SortStableFunc(sites, func(a, b fsm.AccountView) int {
		return cmp.Compare(v.Amounts.standing(b.Priority), v.Amounts.standing(a.Priority))
	})
	rows := make([]account, 0, len(sites))
	for _, a := range sites {
		rows = append(rows, account{
			Site: a.Site, Contribution: v.Amounts.Standing(a.Contribution), Utility: v.Amounts.Standing(a.Utility),
			Priority: v.Amounts.Standing(a.Priority), Bar: diverge(v.Amounts.standing(a.Priority), most),
		})
	}
	return rows
}

// diverge draws n of at most most on 200 units with 0 in the middle.
func diverge(n, most float64) diverging {
	if most == 0 || n == 0 {
		return diverging{}
	}
	w := max(1, int(max(n, -n)/most*100))
	if n < 0 {
		return diverging{100 - w, w, "fill-owes"}
	}
	return diverging{100, w, "fill-owed"}
}

// measure reads what the chart draws.
func (v *fairnessView) measure(s *archive.Standing) float64 {
	switch v.Show {
	case "contribution":
		return v.Amounts.scale(s.Contribution)
	case "utility":
		return v.Amounts.scale(s.Utility)
	}
	return v.Amounts.scale(s.Priority)
}

// maxLines bounds the lines of the chart: more are not told apart.
const maxLines = 8

// lines draws the sites that stand out most now.
func (v *fairnessView) lines(samples []archive.Sample) chart {
	now := samples[len(samples)-1]
	last := slices.Clone(now.Sites)
	slices.SortStableFunc(last, func(a, b archive.Standing) int {
		x, y := v.measure(&a), v.measure(&b)
		return cmp.Compare(max(y, -y), max(x, -x))
	})
	last = last[:min(len(last), maxLines)]
	slices.SortFunc(last, func(a, b archive.Standing) int { return cmp.Compare(a.Site, b.Site) })
	c := newChart(samples[0].At, now.At)
	samples = thinned(samples)
	for _, a := range last {
		var points []point
		for _, s := range samples {
			i, ok := slices.BinarySearchFunc(s.Sites, a.Site,
				func(x archive.Standing, site string) int { return cmp.Compare(x.Site, site) })
			if ok {
				points = append(points, point{s.At, v.measure(&s.Sites[i])})
			}
		}
		c.add(a.Site, points)
	}
	c.finish()
	return c
}

// maxSamples is how many points a line has at most.
const maxSamples = 300

// thinned keeps every n-th sample, and the last.
func thinned(samples []archive.Sample) []archive.Sample {
	step := (len(samples) + maxSamples - 1) / maxSamples
	var out []archive.Sample
	for i := (len(samples) - 1) % step; i < len(samples); i += step {
		out = append(out, samples[i])
	}
	return out
}

// paint gives the rows their lines' colours.
func (v *fairnessView) paint() {
	for i := range v.Rows {
		for _, l := range v.Chart.Lines {
			if l.Name == v.Rows[i].Site {
				v.Rows[i].Color = l.Color
			}
		}
	}
}
