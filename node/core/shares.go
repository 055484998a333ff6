package core

import (
	"fmt"
	"strconv"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

const (
	// windowPerCore is how much of its users' work a site publishes for each core that the federation lends: all of
	// them are busy, and as much waits.
	windowPerCore = 2
	// leastWindow is the window where next to nothing is lent: what waits then shows what is wanted.
	leastWindow = 16_000
	// looksPerTurn is how many published jobs are looked at in each turn while others are held.
	looksPerTurn = 100
	// maxReleases bounds the held jobs that one turn publishes; the next turn goes on.
	maxReleases = 500
	// oldestPerTurn of the jobs on their way are published in a turn, whosever turn it is, while numbers are short.
	oldestPerTurn = 100
	// maxRenices bounds the jobs whose nice value changes at once.
	maxRenices = 10 * command.MaxReports
)

// countTaken counts a job of a user.
func (c *Core) countTaken(js *command.JobSpec, user string, held bool) {
	switch {
	case user == "":
	case held:
		c.quotas.Hold(user, claimOf(js))
	default:
		c.quotas.Accept(js.Num, user, claimOf(js), js.Nice, c.now.Boot/1e6)
	}
}

// released counts a held job as published, and says how nice it is.
func (c *Core) released(p *publish.Job) uint32 {
	return c.quotas.Release(p.Spec.Num, p.User, claimOf(&p.Spec), c.now.Boot/1e6)
}

// publishHeld publishes held jobs, as far as the window has room, in the order of their users' shares.
func (c *Core) publishHeld(s StateReader) {
	if c.quotas.Waiting() {
		c.lookAtUsers(looksPerTurn, s) // what has ended since the last turn makes room
		if c.numbersShort(s) {
			c.pubs.ReleaseOldest(oldestPerTurn)
		}
	}
	for range maxReleases {
		user := c.quotas.Next()
		if user == "" || !c.pubs.Release(user) {
			return
		}
	}
}

// numbersShort reports whether the state remembers so many ranges of this site's numbers that it will soon take no
// jobs: a range ends at each number that is not settled, and none is settled above the oldest held job.
func (c *Core) numbersShort(s StateReader) bool {
	v, _ := s.Quotas(c.site)
	for _, u := range v.Uses {
		if u.Quota == command.QuotaNumbers {
			return u.Used > u.Limit/4*3
		}
	}
	return false
}

// holdRecovered has what an earlier life of this broker took and did not publish wait for its user's turn again.
func (c *Core) holdRecovered(s StateReader, fx *Effects) {
	c.setWindow(s)
	c.pubs.HoldRecovered(c.whose.UserOf, func(num uint64) bool {
		id := command.JobID{Site: c.site, Num: num}
		_, ok := s.Job(id)
		return ok || s.Retired(id)
	}, fx)
}

// setWindow brings the window in line with what the federation lends.
func (c *Core) setWindow(s StateReader) {
	c.quotas.SetWindow(uint64(max(windowPerCore*s.Lent(), c.leastWindow)))
}

// renice has users' jobs served in the order of their use.
func (c *Core) renice() {
	if c.renicing {
		return
	}
	jobs := c.quotas.Renice(maxRenices, func(num uint64) bool { return !c.isOwn(num) })
	for len(jobs) > 0 {
		n := min(len(jobs), command.MaxReports)
		c.renicing = true
		last := n == len(jobs)
		c.out.Add(&command.Renice{Jobs: jobs[:n]}, func(command.Result, StateReader, *Effects) {
			c.renicing = c.renicing && !last
		})
		jobs = jobs[n:]
	}
}

// heldWhy says why a user's job is held.
func (c *Core) heldWhy(num uint64) string {
	user := c.whose.UserOf(num)
	t := c.quotas.TurnOf(user)
	if t.Window == 0 {
		return "held at this site until the broker is registered: what is published is decided then"
	}
	return fmt.Sprintf("held at this site until it is the turn of user %s, of whom %d tasks are held, and tasks for %s "+
		"cores wait in the federation's queue or run; a site publishes its users' tasks for about %s cores at a time, "+
		"the next being of who has used least of its shares (%d users before this one: `cloudshare quota users`)",
		user, t.Held, cores(t.Published), cores(t.Window), t.Before)
}

// cores words thousandths of cores.
func cores(milliCPU uint64) string { return strconv.FormatFloat(float64(milliCPU)/1000, 'f', -1, 64) }
