package sim

import "github.com/cloudshare/cloudshare/sched"

var _ turn = (*clairvoyant)(nil)

// clairvoyant is ALONE for jobs as they are, if all lengths were known when jobs
// are submitted: waits count by work, and each site's virtual queue books each core
// of a job for as long as it will run. It is no policy: it shows what is lost by
// not knowing lengths.
type clairvoyant struct {
	c      *Case
	policy sched.Policy
	sites  []sched.Account
	all    sched.Waits
	alone  []pool // each site's own cores
	grand  pool
	total  sched.Int128 // what all together would wait
	next   []int        // by site: the first task whose background is not booked
}

func newClairvoyant(c *Case) *clairvoyant {
	policy, err := sched.New(sched.Alone, sched.Partial)
	if err != nil {
		panic("a policy of the product is unknown: " + err.Error())
	}
	t := &clairvoyant{c: c, policy: policy, sites: make([]sched.Account, len(c.Cores)), next: make([]int, len(c.Cores))}
	for o, cores := range c.Cores {
		t.sites[o].Projection.Scale = 1
		t.alone = append(t.alone, make(pool, cores))
		t.grand = append(t.grand, t.alone[o]...)
	}
	return t
}

func (t *clairvoyant) arrived(task int, now int64) {
	k := &t.c.Tasks[task]
	for ; t.next[k.Site] <= task; t.next[k.Site]++ {
		if b := &t.c.Tasks[t.next[k.Site]]; b.Site == k.Site && b.Background {
			t.alone[k.Site].book(b)
			t.grand.book(b)
		}
	}
	p := &t.sites[k.Site].Projection
	p.Fair = p.Fair.Add(t.alone[k.Site].book(k))
	t.total = t.total.Add(t.grand.book(k))
	p.Wait(k.Width*k.Run, now)
	t.all.Wait(k.Width*k.Run, now)
}

func (t *clairvoyant) began(task, _ int, now int64) {
	k := &t.c.Tasks[task]
	t.sites[k.Site].Projection.Start(k.Width*k.Run, k.Release, now)
	t.all.Start(k.Width*k.Run, k.Release, now)
}

func (t *clairvoyant) rank(site, _ int, now int64) sched.Rank {
	p := &t.sites[site].Projection
	p.Ahead, p.Queued = t.total.Sub(t.all.At(now)), t.all.Units
	return t.policy.Rank(&t.sites[site], now)
}

// pool is when each of some cores is free, the first at [0].
type pool []int64

// book runs a task's cores one by one as they become free, and returns what its
// work waits. A task wider than the pool takes its cores again.
func (p pool) book(t *Task) (waited sched.Int128) {
	for range t.Width {
		start := max(p[0], t.Release)
		waited = waited.Add(sched.Mul64(start-t.Release, t.Run))
		p[0] = start + t.Run
		p.sink()
	}
	return waited
}

// sink moves the first down to where it belongs.
func (p pool) sink() {
	for i := 0; ; {
		k := 2*i + 1
		if k+1 < len(p) && p[k+1] < p[k] {
			k++
		}
		if k >= len(p) || p[i] <= p[k] {
			return
		}
		p[i], p[k] = p[k], p[i]
		i = k
	}
}
