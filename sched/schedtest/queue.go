// Package schedtest has virtual queues in their plainest form, to compare package
// sched's with: for tests only.
package schedtest

import (
	"math/big"
	"slices"

	"github.com/cloudshare/cloudshare/sched"
)

// Big returns x.
func Big(x sched.Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(x.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(x.Lo))
}

// Queue is a virtual queue as sched/DESIGN.md reads: a list of cores, and units
// that start one by one.
type Queue struct {
	Clock, Units, Length int64
	Work, Starts, Rels   *big.Int
	Cores, Away          []int64
	Least, Lent          int64
}

// NewQueue is sched.NewQueue.
func NewQueue(least, now int64) *Queue {
	q := &Queue{Clock: now, Least: least, Work: new(big.Int), Starts: new(big.Int), Rels: new(big.Int)}
	for range least {
		q.Cores = append(q.Cores, 0)
	}
	return q
}

// Step is sched.Queue's.
func (p *Queue) Step(now int64, c *sched.Change, limit int) {
	p.start(now - 1)
	p.withdraw(c.Gone)
	p.correct(now, Big(c.Corrected))
	p.resize(now, c.Cores)
	p.prolong(now, c.Longer)
	if c.Past.Units > 0 {
		at := new(big.Int).Div(Big(c.Past.Released), big.NewInt(c.Past.Units)).Int64()
		p.release(c.Past.Units, Big(c.Past.Work), Big(c.Past.Released), at)
		p.start(now - 1)
	}
	p.release(c.New.Units, Big(c.New.Work), new(big.Int).Mul(big.NewInt(c.New.Units), big.NewInt(now)), now)
	p.Clock = now
	p.measure()
	p.Cores, p.Away = coarsen(p.Cores, now, limit), coarsen(p.Away, 0, limit)
}

func (p *Queue) start(limit int64) {
	for p.Units > 0 && len(p.Cores) > 0 {
		i := leastOf(p.Cores)
		if p.Cores[i] > limit {
			return
		}
		p.startOn(i)
	}
}

func (p *Queue) startOn(i int) {
	p.Starts.Add(p.Starts, big.NewInt(p.Cores[i]))
	p.Work.Sub(p.Work, big.NewInt(p.Length))
	p.Cores[i] += p.Length
	if p.Units--; p.Units == 0 {
		p.Work.SetInt64(0)
	}
}

func (p *Queue) release(n int64, work, rels *big.Int, at int64) {
	if n == 0 {
		return
	}
	if p.Units == 0 {
		for i, t := range p.Cores {
			p.Cores[i] = max(t, at)
		}
	}
	p.Units += n
	p.Work.Add(p.Work, work)
	p.Rels.Add(p.Rels, rels)
	p.measure()
}

func (p *Queue) measure() {
	if p.Length = 0; p.Units == 0 {
		return
	}
	if n := big.NewInt(p.Units); p.Work.Cmp(n) < 0 {
		p.Work.Set(n)
	}
	mean := new(big.Int).Div(p.Work, big.NewInt(p.Units))
	p.Length = sched.MaxNow
	if mean.IsInt64() {
		p.Length = min(sched.MaxNow, mean.Int64())
	}
}

func (p *Queue) withdraw(b sched.Batch) {
	n := min(b.Units, p.Units)
	if n == 0 {
		return
	}
	work, rels := Big(b.Work), Big(b.Released)
	if n < b.Units {
		work = new(big.Int).Set(p.Work)
		rels.Div(rels, big.NewInt(b.Units)).Mul(rels, big.NewInt(n))
	}
	p.Units -= n
	p.Rels.Sub(p.Rels, rels)
	if p.Work.Sub(p.Work, work); p.Units == 0 {
		p.Work.SetInt64(0)
	}
	p.measure()
}

func (p *Queue) correct(now int64, by *big.Int) {
	if by.Sign() != 0 && p.Units > 0 {
		p.Work.Add(p.Work, by)
		by = new(big.Int)
		if p.Work.Cmp(big.NewInt(p.Units)) < 0 {
			by.Sub(p.Work, big.NewInt(p.Units))
		}
		p.measure()
	}
	for by.Sign() < 0 && len(p.Cores) > 0 { // off the core that frees last
		last := slices.Index(p.Cores, slices.Max(p.Cores))
		cut := min(p.Cores[last]-now, new(big.Int).Neg(by).Int64())
		if cut <= 0 {
			return
		}
		p.Cores[last] -= cut
		by = new(big.Int).Add(by, big.NewInt(cut))
	}
	if by.Sign() > 0 && len(p.Cores) > 0 {
		if first := leastOf(p.Cores); p.Cores[first] > now {
			p.Cores[first] += by.Int64()
		}
	}
}

func (p *Queue) prolong(now int64, b sched.Batch) {
	if b.Units == 0 {
		return
	}
	if p.Units > 0 {
		p.Work.Add(p.Work, Big(b.Work))
		p.measure()
		return
	}
	length := new(big.Int).Div(Big(b.Work), big.NewInt(b.Units)).Int64()
	for i, at := range p.Cores {
		p.Cores[i] = max(at, now)
	}
	for range min(b.Units, int64(len(p.Cores))) {
		p.Cores[leastOf(p.Cores)] += max(1, length)
	}
}

func (p *Queue) resize(now, more int64) {
	p.Lent = max(0, p.Lent+more)
	for more = max(p.Least, p.Lent) - int64(len(p.Cores)); more < 0; more++ {
		i := leastOf(p.Cores)
		p.Away = append(p.Away, max(p.Cores[i], now))
		p.Cores = slices.Delete(p.Cores, i, i+1)
	}
	for ; more > 0; more-- {
		at := now
		if len(p.Away) > 0 {
			last := slices.Index(p.Away, slices.Max(p.Away))
			at = max(at, p.Away[last])
			p.Away = slices.Delete(p.Away, last, last+1)
		}
		p.Cores = append(p.Cores, at)
	}
}

func coarsen(times []int64, now int64, limit int) []int64 {
	kinds := func(t []int64) int {
		t = slices.Clone(t)
		slices.Sort(t)
		return len(slices.Compact(t))
	}
	if kinds(times) <= limit {
		return times
	}
	out := make([]int64, len(times))
	for i, t := range times {
		out[i] = max(t, now)
	}
	for step := int64(2); kinds(out) > limit; step *= 2 {
		rounded := make([]int64, len(out))
		for i, t := range out {
			rounded[i] = (t + step - 1) / step * step
		}
		if kinds(rounded) <= limit/2 {
			return rounded
		}
	}
	return out
}

// Total returns the wait if what waits starts one by one on the first free core.
func (p *Queue) Total() *big.Int {
	if p.Units > 0 && len(p.Cores)+len(p.Away) == 0 {
		return Big(sched.MaxWait)
	}
	q := &Queue{
		Units: p.Units, Length: p.Length, Work: new(big.Int), Starts: new(big.Int).Set(p.Starts),
		Cores: slices.Clone(p.Cores),
	}
	for _, at := range p.Away { // when it is thought to come back
		q.Cores = append(q.Cores, max(at+p.Length, 2*p.Clock-at))
	}
	for q.Units > 0 {
		q.startOn(leastOf(q.Cores))
	}
	if q.Starts.Sub(q.Starts, p.Rels).Sign() < 0 {
		return new(big.Int)
	}
	return q.Starts
}

func leastOf(times []int64) int { return slices.Index(times, slices.Min(times)) }
