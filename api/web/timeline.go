package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// timelineView is what ran where in the last hours.
type timelineView struct {
	Kept    bool
	Windows []window
	Gantt   gantt
	Shown   int
	Short   int  // of them not drawn one by one
	More    bool // older ones of the window are left out
	Site    string
	Sites   []string
	Since   time.Duration // what is drawn
}

type window struct {
	Name    string
	For     time.Duration
	Current bool
}

const (
	// maxBars bounds the attempts of one drawing that are drawn one by one.
	maxBars = 1500
	// maxDrawn bounds the attempts that it is drawn from, more than are remembered.
	maxDrawn = 50_000
)

var windows = []window{
	{Name: "5m", For: 5 * time.Minute},
	{Name: "30m", For: 30 * time.Minute},
	{Name: "2h", For: 2 * time.Hour},
	{Name: "6h", For: 6 * time.Hour},
	{Name: "24h", For: 24 * time.Hour},
}

func (p *Pages) timeline(r *http.Request, _ func(string) string) (view, error) {
	v := timelineView{Kept: p.cfg.History != nil, Windows: slices.Clone(windows), Site: r.URL.Query().Get("site")}
	chosen := 1
	for i, w := range v.Windows {
		if w.Name == r.URL.Query().Get("last") {
			chosen = i
		}
	}
	v.Windows[chosen].Current = true
	v.Since = v.Windows[chosen].For
	cores := map[string]int{}
	for _, s := range p.cfg.Source.Sites() {
		v.Sites = append(v.Sites, s.ID)
		cores[s.ID] = int((s.Capacity.MilliCPU + 999) / 1000)
	}
	if !slices.Contains(v.Sites, v.Site) {
		v.Site = ""
	}
	if v.Kept {
		v.draw(r.Context(), p.cfg.History, cores, p.cfg.Now())
	}
	return view{template: "timeline", data: v}, nil
}

// draw has a row for every site that ran something. Of many attempts the longest
// are drawn one by one, the others together. Only beyond what is ever remembered
// the period is cut, so that the drawing is complete for what it shows. No row has
// more lanes than its site has cores.
func (v *timelineView) draw(ctx context.Context, history History, cores map[string]int, now time.Time) {
	list := history.Attempts(ctx, now.Add(-v.Since), v.Site, maxDrawn+1)
	if len(list) > maxDrawn {
		v.More = true
		v.Since = max(time.Second, now.Sub(list[maxDrawn].Ended))
		list = list[:maxDrawn]
	}
	v.Shown = len(list)
	v.trim(list, now)
	v.Gantt = newGantt(now.Add(-v.Since), now)
	long, short := list, []Attempt(nil)
	if len(list) > maxBars {
		slices.SortStableFunc(list, func(a, b Attempt) int { return cmp.Compare(b.ran(now), a.ran(now)) })
		long, short = list[:maxBars], list[maxBars:]
	}
	longBySite, shortBySite := bySite(long), bySite(short)
	sites := map[string]bool{}
	for _, a := range list {
		sites[a.Site] = true
	}
	column := 1 + len(sites)*ganttWidth/(4*maxBars) // the more rows, the coarser
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		rows := longBySite[site]
		slices.SortFunc(rows, func(a, b Attempt) int { return a.Started.Compare(b.Started) })
		v.Gantt.add(site, "/timeline?site="+site, cores[site], rows, shortBySite[site], column)
	}
	for _, row := range v.Gantt.Rows {
		v.Short += row.More
	}
}

// ran returns how long an attempt has run.
func (a *Attempt) ran(now time.Time) time.Duration {
	if a.Ended.IsZero() {
		return now.Sub(a.Started)
	}
	return a.Ended.Sub(a.Started)
}

func bySite(list []Attempt) map[string][]Attempt {
	out := map[string][]Attempt{}
	for _, a := range list {
		out[a.Site] = append(out[a.Site], a)
	}
	return out
}

// trim begins with the first attempt: a young federation fills the drawing, too.
func (v *timelineView) trim(list []Attempt, now time.Time) {
	first := now
	for _, a := range list {
		if a.Started.Before(first) {
			first = a.Started
		}
	}
	if age := now.Sub(first); age < v.Since {
		v.Since = max(time.Second, age)
	}
}

// eventKinds names all kinds of events, for the filter.
func eventKinds() []string {
	kinds := fsm.EventKinds()
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return names
}
