package plausible

import (
	"math"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// leastRunMs: shorter runs count as so long. Of those it is the start that differs.
	leastRunMs = 1000
	// maxGroups jobs are compared at a time, maxPlaces sites of each, and maxOwners of a site are told apart.
	maxGroups, maxPlaces, maxOwners = 1024, 64, 64
	// maxLog bounds what one job says: a factor of eight.
	maxLog = 2.0794415416798357
	// maxWeight bounds how much one job counts: that of a hundred tasks, half of them here.
	maxWeight = 25
	// enoughTasks at a site, and as many elsewhere, are compared; fewer say nothing.
	enoughTasks = 20
)

// groups are the jobs with several tasks that are compared, each by site.
type groups map[command.JobID]*group

// group is the runs of one job's tasks.
type group struct {
	usedMs int64
	places map[string]moments
}

// moments sums logarithms of run times.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.plus(moments{1, x, x * x}) }

func (m *moments) plus(o moments) {
	m.n += o.n
	m.sum += o.sum
	m.squares += o.squares
}

func (m *moments) mean() float64 { return m.sum / m.n }

// spread is the sum of the squares of the distances from the mean.
func (m *moments) spread() float64 { return max(0, m.squares-m.sum*m.sum/m.n) }

// contrast is by how much tasks of the same jobs took longer at one site than at others, over jobs: weighted sums of
// the difference of the mean logarithms, and its squares.
type contrast struct {
	weight, sum, squares   float64
	jobs, tasks, elsewhere float64
	spread, freedom        float64 // of runs within one job and side
}

func (c *contrast) scale(by float64) {
	for _, v := range []*float64{
		&c.weight, &c.sum, &c.squares, &c.jobs, &c.tasks, &c.elsewhere, &c.spread, &c.freedom,
	} {
		*v *= by
	}
}

// add takes one job.
func (c *contrast) add(here, there moments) {
	weight := min(maxWeight, here.n*there.n/(here.n+there.n))
	d := min(maxLog, max(-maxLog, here.mean()-there.mean()))
	c.weight += weight
	c.sum += weight * d
	c.squares += weight * d * d
	c.jobs++
	c.tasks += here.n
	c.elsewhere += there.n
	c.spread += here.spread() + there.spread()
	c.freedom += here.n - 1 + there.n - 1
}

// slowness returns the figures. The bound is three standard errors below, by the variance within jobs or between
// them, whichever is greater.
func (c *contrast) slowness() node.Slowness {
	out := node.Slowness{Tasks: c.tasks, Elsewhere: c.elsewhere, Jobs: c.jobs}
	if c.tasks < enoughTasks || c.elsewhere < enoughTasks || c.freedom <= 0 {
		return out
	}
	mean := c.sum / c.weight
	variance := c.spread / c.freedom
	if c.jobs > 1 {
		variance = max(variance, (c.squares-c.weight*mean*mean)/(c.jobs-1))
	}
	out.Factor = math.Exp(mean)
	out.AtLeast = math.Exp(mean - 3*math.Sqrt(max(0, variance)/c.weight))
	return out
}

// compare takes the run of a task that succeeded. A job has several tasks once one other than the first has ended.
func (w *Watch) compare(ev *fsm.Event) {
	g := w.groups[ev.Job]
	if g == nil {
		if ev.Task == 0 {
			return
		}
		if len(w.groups) >= maxGroups {
			w.close(w.groups.oldest(), ev.Time)
		}
		g = &group{places: map[string]moments{}}
		w.groups[ev.Job] = g
	}
	g.usedMs = ev.Time
	m, known := g.places[ev.Site]
	if !known && len(g.places) >= maxPlaces {
		return
	}
	m.add(math.Log(float64(max(leastRunMs, ev.RunMs))))
	g.places[ev.Site] = m
}

// forget drops a site for good, also from jobs that go on: a new site of its name is another one.
func (w *Watch) forget(site string) {
	delete(w.sites, site)
	for _, g := range w.groups {
		delete(g.places, site)
	}
}

// oldest returns the job of which no task ended for the longest time.
func (g groups) oldest() (id command.JobID) {
	var found *group
	for k, v := range g { // in any order: which of equals goes does not matter
		if found == nil || v.usedMs < found.usedMs {
			id, found = k, v
		}
	}
	return id
}

// close counts a job that is over.
func (w *Watch) close(id command.JobID, ms int64) {
	g := w.groups[id]
	if g == nil {
		return
	}
	delete(w.groups, id)
	g.contrasts(id, func(site string, here, there moments) {
		t := w.site(site, ms)
		t.slow.add(here, there)
		if len(t.owners) < maxOwners {
			t.owners[id.Site] = struct{}{}
		}
	})
}

// contrasts yields each site but the owner's that ran some of the job while others did, too.
func (g *group) contrasts(id command.JobID, yield func(site string, here, there moments)) {
	var all moments
	for _, m := range g.places {
		all.plus(m)
	}
	for site, here := range g.places {
		there := moments{all.n - here.n, all.sum - here.sum, all.squares - here.squares}
		if site != id.Site && there.n >= 1 {
			yield(site, here, there)
		}
	}
}
