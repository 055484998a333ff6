package sim

import "github.com/cloudshare/cloudshare/sched"

var _ turn = (*anchored)(nil)

// anchorSeconds is how long what a site lent beyond what it used would have to wait to
// count as much as its excess.
const anchorSeconds = 24 * 3600

// anchored is the fairest turn for jobs as they are that was found, if all lengths were
// known when jobs are submitted: what clairvoyant goes by, for each core of the
// site, and SIMPL_DIRECT's lent less used beside it. Each alone is worse. It is no
// policy: with lengths that can be known it is not fairer everywhere (FAIRER.md).
type anchored struct {
	clairvoyant *clairvoyant
	cores       int64   // of all sites
	settled     []int64 // by site: core-seconds lent less used, of what has ended
	live, since []int64 // of what runs: cores lent less used, and these times starts
	running     endQueue
	runs        int
}

func newAnchored(c *Case) *anchored {
	n := len(c.Cores)
	return &anchored{
		clairvoyant: newClairvoyant(c), cores: Sum(c.Cores), settled: make([]int64, n),
		live: make([]int64, n), since: make([]int64, n),
	}
}

func (t *anchored) arrived(task int, now int64) { t.clairvoyant.arrived(task, now) }

func (t *anchored) began(task, site int, now int64) {
	t.clairvoyant.began(task, site, now)
	if k := &t.clairvoyant.c.Tasks[task]; k.Site != site {
		t.lend(site, k.Site, k.Width, now)
		t.runs++
		t.running.push(end{at: now + k.Run, n: t.runs, task: task, site: site})
	}
}

// lend has one site run so many cores for another from now on; below 0, no more.
func (t *anchored) lend(from, to int, cores, now int64) {
	t.live[from] += cores
	t.since[from] += cores * now
	t.live[to] -= cores
	t.since[to] -= cores * now
}

// balance returns what a site lent less what it used until now, in core-seconds.
func (t *anchored) balance(site int, now int64) int64 {
	for !t.running.empty() && t.running.at() <= now {
		e := t.running.pop()
		k := &t.clairvoyant.c.Tasks[e.task]
		t.lend(e.site, k.Site, -k.Width, e.at-k.Run)
		t.settled[e.site] += k.Width * k.Run
		t.settled[k.Site] -= k.Width * k.Run
	}
	return t.settled[site] + t.live[site]*now - t.since[site]
}

// rank returns the excess over the site's cores, as many times as sites have on the mean,
// and the balance for anchorSeconds.
func (t *anchored) rank(site, head int, now int64) sched.Rank {
	r := t.clairvoyant.rank(site, head, now)
	excess := sched.Excess(r, &t.clairvoyant.sites[site].Projection)
	own := t.clairvoyant.c.Cores[site] * int64(len(t.settled))
	return sched.Rank{
		Num: excess.MulInt64(t.cores).Add(sched.Mul64(t.balance(site, now), anchorSeconds).MulInt64(own)),
		Den: own,
	}
}
