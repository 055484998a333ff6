package sim

import "slices"

// Lie is something that a site might do to wait less.
type Lie struct {
	Name string
	// tell has a site of a case do it; period is how long submissions last.
	tell func(c *Case, site int, period int64)
}

// Lies lists what is tried, beside what an honest site does: expose all cores,
// publish each job as it comes, declare true lengths as timeouts, and tell of each
// end at once.
func Lies() []Lie {
	return []Lie{
		{"declares ten times the length", conduct(func(c *Conduct, _ int64) { c.Declare = 1000 })},
		{"declares no length", conduct(func(c *Conduct, _ int64) { c.Declare = 0 })},
		{"splits each task in four", func(c *Case, site int, _ int64) { split(c, site, 4) }},
		{"reports others' ends 10 min late", conduct(func(c *Conduct, _ int64) { c.Lag = 600 })},
		{"withdraws idle cores while only others wait", conduct(func(c *Conduct, _ int64) { c.Withdraw = true })},
		{"claims nine times its cores as in its own use", func(c *Case, site int, _ int64) { c.Conduct[site].Claim = 9 * c.Cores[site] }},
		{"offers nine times its cores while nothing waits", func(c *Case, site int, _ int64) { c.Conduct[site].Boast = 8 * c.Cores[site] }},
		{"holds jobs back, as many out as it has cores", conduct(func(c *Conduct, _ int64) { c.Drip = true })},
		{"joins after half of the period", away(func(p int64) [2]int64 { return [2]int64{0, p / 2} })},
		{"leaves for the second third, and returns", away(func(p int64) [2]int64 { return [2]int64{p / 3, 2 * p / 3} })},
	}
}

// conduct makes a lie of a change of conduct.
func conduct(change func(c *Conduct, period int64)) func(*Case, int, int64) {
	return func(c *Case, site int, period int64) { change(&c.Conduct[site], period) }
}

// away makes a lie of not being there: what is released meanwhile runs at home.
func away(when func(period int64) [2]int64) func(*Case, int, int64) {
	return func(c *Case, site int, period int64) {
		conduct := &c.Conduct[site]
		conduct.Away = when(period)
		for i := range c.Tasks {
			if t := &c.Tasks[i]; t.Site == site && conduct.IsAway(t.Release) && t.Width <= c.Cores[site] {
				t.Background = true
			}
		}
	}
}

// split makes k tasks of each of a site's, each for its part of the time.
func split(c *Case, site int, k int64) {
	tasks := make([]Task, 0, len(c.Tasks))
	for _, t := range c.Tasks {
		run, parts := t.Run, int64(1)
		if t.Site == site && !t.Background {
			parts = min(k, run)
		}
		first := t.Index * int32(k)
		for i := range parts {
			t.Run, t.Index = run*(i+1)/parts-run*i/parts, first+int32(i)
			tasks = append(tasks, t)
		}
	}
	c.Tasks = tasks
}

// Honest returns the case with all sites honest.
func (c *Case) Honest() *Case {
	h := *c
	h.Tasks = slices.Clone(c.Tasks)
	h.Conduct = make([]Conduct, len(c.Cores))
	for i := range h.Conduct {
		h.Conduct[i].Declare = 100
	}
	return &h
}

// Told returns the case in which some sites lie.
func (l *Lie) Told(c *Case, liars Coalition, period int64) *Case {
	t := c.Honest()
	for site := range c.Cores {
		if liars.Has(site) {
			l.tell(t, site, period)
		}
	}
	return t
}
