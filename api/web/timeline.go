package web

import (
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
	More    bool // older ones of the window are not drawn
	Site    string
	Sites   []string
	Since   time.Duration // what is drawn
}

type window struct {
	Name    string
	For     time.Duration
	Current bool
}

// maxBars bounds the attempts of one drawing.
const maxBars = 1500

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
	for _, s := range p.cfg.Source.Sites() {
		v.Sites = append(v.Sites, s.ID)
	}
	if !slices.Contains(v.Sites, v.Site) {
		v.Site = ""
	}
	if v.Kept {
		v.draw(p.cfg.History, p.cfg.Now())
	}
	return view{template: "timeline", data: v}, nil
}

// draw has a row for every site that ran something. Too many attempts shorten
// what is drawn, so that it is complete for what it shows.
func (v *timelineView) draw(history History, now time.Time) {
	list := history.Attempts(now.Add(-v.Since), v.Site, maxBars+1)
	if len(list) > maxBars {
		v.More = true
		v.Since = max(time.Second, now.Sub(list[maxBars].Ended))
		list = list[:maxBars]
	}
	v.Shown = len(list)
	v.trim(list, now)
	v.Gantt = newGantt(now.Add(-v.Since), now)
	bySite := map[string][]Attempt{}
	for _, a := range list {
		bySite[a.Site] = append(bySite[a.Site], a)
	}
	for _, site := range slices.Sorted(maps.Keys(bySite)) {
		rows := bySite[site]
		slices.SortFunc(rows, func(a, b Attempt) int { return a.Started.Compare(b.Started) })
		v.Gantt.add(site, "/timeline?site="+site, rows)
	}
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
