package sim

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Conduct is how a site departs from what the others take for granted. An honest
// one has the zero value, but for Declare. It is the site that behaves so, not the
// broker's code: what it tells its broker, and when.
type Conduct struct {
	// Declare is the timeout that it declares for its tasks, in percent of their true
	// length; 0: what the case says.
	Declare int64
	// Lag is how many seconds late it reports that another site's task ended, as if
	// it had run so long; the cores stay taken meanwhile.
	Lag int64
	// Withdraw: it exposes what is idle, but not while only others' tasks wait.
	Withdraw bool
	// Drip: at most as many of its tasks are with the federation at a time as it has
	// cores; it holds back the rest.
	Drip bool
	// Claim is how many cores it says that its own users take, besides those they do.
	Claim int64
	// Boast is how many cores more than it has it offers, whenever it offers while
	// nothing waits.
	Boast int64
	// Away is when it is no part of the federation, seconds [from, to): it exposes
	// nothing, and its tasks released then use only its own machine.
	Away [2]int64
}

// IsAway reports whether the site is away in that second.
func (c *Conduct) IsAway(now int64) bool { return c.Away[0] <= now && now < c.Away[1] }

// conductOf returns a site's conduct.
func (c *Case) conductOf(site int) Conduct {
	if site < len(c.Conduct) {
		return c.Conduct[site]
	}
	return Conduct{}
}

// turningPoints returns when a site comes or goes, in order.
func (c *Case) turningPoints() (at []int64) {
	for i := range c.Conduct {
		if a := c.Conduct[i].Away; a[0] < a[1] {
			at = append(at, a[0], a[1])
		}
	}
	slices.Sort(at)
	return at
}

// hides reports whether the site exposes nothing now but what is in use. One that
// withdraws does not once nothing else will ever happen: somebody may wait for
// just its machine.
func (s *siteShell) hides() bool {
	if s.conduct.IsAway(s.p.now) {
		return true
	}
	over := s.p.ends.empty() && s.p.next == len(s.p.c.Tasks)
	return s.conduct.Withdraw && s.waits == 0 && s.p.waits > 0 && !over
}

// room returns how much of its machine it shows, in cores.
func (s *siteShell) room() int64 {
	if s.hides() {
		return min(s.used, s.cores-s.own)
	}
	return s.cores - s.own
}

// refreshOffer shows the machine again if it shows more or less of it now.
func (s *siteShell) refreshOffer() {
	if s.room() != s.shown {
		s.showMachine()
	}
}

// told returns an offer as the site makes it.
func (s *siteShell) told(offer *command.Offer) *command.Offer {
	o := *offer
	o.Home.MilliCPU += s.conduct.Claim * 1000
	if s.p.c.WholeShare {
		o.Home.MilliCPU += s.own * 1000
	}
	if s.conduct.Boast > 0 && s.p.waits == 0 {
		o.Machines = slices.Clone(o.Machines)
		for i := range o.Machines {
			o.Machines[i].Resources.MilliCPU += s.conduct.Boast * 1000
		}
	}
	return &o
}

// gotBack: a task of the site has ended, wherever.
func (s *siteShell) gotBack(task int) {
	if !s.p.c.Tasks[task].Background {
		s.underWay--
	}
}

// lag returns how much longer a task seems to run at a site.
func (p *player) lag(task, site int) int64 {
	if t := &p.c.Tasks[task]; t.Site != site && !t.Background {
		return p.sites[site].conduct.Lag
	}
	return 0
}

// arrive takes n alike tasks of its users, and submits those that are not held back.
func (s *siteShell) arrive(task, n int) {
	s.held = append(s.held, alike{task, n})
	s.release()
}

// release submits what is not held back any more.
func (s *siteShell) release() {
	for len(s.held) > 0 && (!s.conduct.Drip || s.underWay < s.cores) {
		next := &s.held[0]
		n := next.n
		if s.conduct.Drip {
			n = int(min(int64(n), s.cores-s.underWay))
		}
		n = s.submit(next.task, n)
		s.underWay += int64(n)
		if next.task, next.n = next.task+n, next.n-n; next.n == 0 {
			s.held = s.held[1:]
		}
	}
}
