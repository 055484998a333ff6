package sim

import "github.com/cloudshare/cloudshare/sched"

var (
	_ turn = firstCome{}
	_ turn = (*ceiling)(nil)
)

// firstCome serves the task that waits longest, whosever it is: what coalitions of
// unequal work are measured by.
type firstCome struct{}

func (firstCome) arrived(int, int64)    {}
func (firstCome) began(int, int, int64) {}

func (firstCome) rank(_, head int, _ int64) sched.Rank {
	return sched.Rank{Num: sched.Int64(-int64(head)), Den: 1}
}

// ceiling serves whose projected wait exceeds its fair share most, as ALONE, CE and
// SHAPLEY do, but it knows the fair share of the end: what nobody can know. It
// is no policy, it shows how far estimates of shares could lead.
type ceiling struct {
	c      *Case
	weight Weight
	policy sched.Policy
	total  sched.Int128 // v(N)
	sites  []sched.Account
	all    sched.Waits
}

func newCeiling(c *Case, weight Weight, fair *Fair) *ceiling {
	policy, err := sched.New(sched.Shapley, sched.Partial)
	if err != nil {
		panic("a policy of the product is unknown: " + err.Error())
	}
	t := &ceiling{
		c: c, weight: weight, policy: policy, total: sched.Int64(fair.Total),
		sites: make([]sched.Account, len(c.Cores)),
	}
	for o := range t.sites {
		t.sites[o].Projection = sched.Projection{Fair: sched.Int64(fair.Phi[o]), Scale: fair.Scale}
	}
	return t
}

func (t *ceiling) arrived(task int, now int64) {
	k := &t.c.Tasks[task]
	n := t.weight.of(k)
	t.sites[k.Site].Projection.Wait(n, now)
	t.all.Wait(n, now)
}

func (t *ceiling) began(task, _ int, now int64) {
	k := &t.c.Tasks[task]
	n := t.weight.of(k)
	t.sites[k.Site].Projection.Start(n, k.Release, now)
	t.all.Start(n, k.Release, now)
}

func (t *ceiling) rank(site, _ int, now int64) sched.Rank {
	p := &t.sites[site].Projection
	p.Ahead, p.Queued = t.total.Sub(t.all.At(now)), t.all.Units
	return t.policy.Rank(&t.sites[site], now)
}

// PlayCeiling plays a case with turns that know the end's φ, in seconds·Scale by
// the weight: no policy can know it, so none can be asked to be fairer.
func PlayCeiling(c *Case, weight Weight, fair *Fair) *Outcome {
	return playBare(c, newCeiling(c, weight, fair))
}

// PlayClairvoyant plays a case under ALONE by work, with all lengths known when jobs
// are submitted.
func PlayClairvoyant(c *Case) *Outcome { return playBare(c, newClairvoyant(c)) }

// PlayAnchored plays a case like PlayClairvoyant, with what a site lent beyond what it
// used as a part of its rank.
func PlayAnchored(c *Case) *Outcome { return playBare(c, newAnchored(c)) }
