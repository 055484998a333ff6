package plausible

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// What stands out. Each has a minimum, below which chance or a hitch explains it.
const (
	// fewBeyond runs, and one of a hundred, do not fit in the log's time.
	fewBeyond, partBeyond = 3, 0.01
	// Tasks take slowFactor times as long, and slowBound by the bound, over slowJobs jobs.
	slowFactor, slowBound, slowJobs = 1.5, 1.25, 3
	// fewReturned tasks come back unrun, and they are partReturned of what was given.
	fewReturned, partReturned = 10, 0.5
	// idleHours core-hours lie idle though tasks wait, and less than partIdle of that was ever run.
	idleHours, partIdle = 1, 0.1
	// None of a faded count is less than this.
	half = 0.5
	// maxExcessMs is a century: a site may report whatever it likes.
	maxExcessMs = 100 * 366 * 24 * 3600e3
)

// View returns what was seen, by site. It is worked out once a sample at most: others ask for it as often as they like,
// and the state waits for the sample after it.
func (w *Watch) View() node.Plausibility {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.viewed {
		w.view, w.viewed = w.judge(), true
	}
	out := w.view
	out.Sites = slices.Clone(out.Sites)
	return out
}

func (w *Watch) judge() node.Plausibility {
	out := node.Plausibility{Since: w.since, HalfLife: HalfLife}
	slow, owners := w.open()
	for _, name := range slices.Sorted(maps.Keys(w.sites)) {
		out.Sites = append(out.Sites, w.sites[name].view(name, slow[name], owners[name]))
	}
	return out
}

// open returns what is in jobs that go on: by site the contrasts, with those that have ended, and their owners.
func (w *Watch) open() (map[string]*contrast, map[string]map[string]struct{}) {
	slow, owners := map[string]*contrast{}, map[string]map[string]struct{}{}
	include := func(site string) {
		if slow[site] == nil {
			t := w.site(site, w.nowMs)
			c := t.slow
			slow[site], owners[site] = &c, maps.Clone(t.owners)
		}
	}
	for name := range w.sites {
		include(name)
	}
	for id, g := range w.groups {
		g.contrasts(id, func(site string, here, there moments) {
			include(site)
			slow[site].add(here, there)
			owners[site][id.Site] = struct{}{}
		})
	}
	return slow, owners
}

func (t *tally) view(name string, slow *contrast, owners map[string]struct{}) node.SitePlausibility {
	v := node.SitePlausibility{
		Site: name, Runs: t.runs, Beyond: t.beyond,
		Excess:   time.Duration(min(t.excessMs, maxExcessMs)) * time.Millisecond,
		Slowness: slow.slowness(), Declined: t.declined, Unstarted: t.unstarted,
		Lent: t.lentHours, Ran: t.ranHours, Idle: t.idleHours,
	}
	v.Slowness.Owners = len(owners)
	for _, note := range []string{beyondNote(&v), slowNote(&v.Slowness), returnedNote(&v), idleNote(&v)} {
		if note != "" {
			v.Notes = append(v.Notes, note)
		}
	}
	return v
}

func beyondNote(v *node.SitePlausibility) string {
	if v.Beyond < fewBeyond-half || v.Beyond < partBeyond*v.Runs {
		return ""
	}
	return fmt.Sprintf("%.0f of %.0f runs of other sites' tasks were reported longer, or begun earlier, than the log has time for, by %s together", v.Beyond, v.Runs, v.Excess.Round(time.Second))
}

func slowNote(s *node.Slowness) string {
	if s.Jobs < slowJobs-half || s.Factor < slowFactor || s.AtLeast < slowBound {
		return ""
	}
	return fmt.Sprintf("other sites' tasks took %.1f times as long as tasks of the same jobs elsewhere (%.0f here, %.0f elsewhere, %.0f jobs of %d owners): slower machines, or durations that are not true", s.Factor, s.Tasks, s.Elsewhere, s.Jobs, s.Owners)
}

func returnedNote(v *node.SitePlausibility) string {
	returned := v.Declined + v.Unstarted
	given := v.Runs + returned
	if returned < fewReturned-half || returned < partReturned*given {
		return ""
	}
	what := fmt.Sprintf("%.0f handed back, %.0f never begun", v.Declined, v.Unstarted)
	if v.Runs < half {
		return fmt.Sprintf("it ran none of the %.0f tasks that other sites gave it: %s", given, what)
	}
	return fmt.Sprintf("of %.0f tasks that other sites gave it %.0f came back unrun: %s", given, returned, what)
}

func idleNote(v *node.SitePlausibility) string {
	if v.Idle < idleHours || v.Ran >= partIdle*v.Idle {
		return ""
	}
	return fmt.Sprintf("%.1f core-hours that it lent lay idle while other sites' tasks waited that would have fitted; it ran %.1f", v.Idle, v.Ran)
}
