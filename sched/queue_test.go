package sched

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plainQueue is a virtual queue as it reads: a list of cores, and units that
// start one by one.
type plainQueue struct {
	clock, units, length int64
	work, starts, rels   *big.Int
	cores, away          []int64
}

func newPlain() *plainQueue {
	return &plainQueue{work: new(big.Int), starts: new(big.Int), rels: new(big.Int)}
}

func (p *plainQueue) step(now int64, c *Change, limit int) {
	p.start(now - 1)
	p.withdraw(c.Gone)
	p.correct(now, toBig(c.Corrected))
	p.resize(now, c.Cores)
	if c.Past.Units > 0 {
		at := new(big.Int).Div(toBig(c.Past.Released), big.NewInt(c.Past.Units)).Int64()
		p.release(c.Past.Units, toBig(c.Past.Work), toBig(c.Past.Released), at)
		p.start(now - 1)
	}
	p.release(c.New.Units, toBig(c.New.Work), new(big.Int).Mul(big.NewInt(c.New.Units), big.NewInt(now)), now)
	p.clock = now
	p.measure()
	p.cores, p.away = plainCoarsen(p.cores, now, limit), plainCoarsen(p.away, 0, limit)
}

func (p *plainQueue) start(limit int64) {
	for p.units > 0 && len(p.cores) > 0 {
		i := leastOf(p.cores)
		if p.cores[i] > limit {
			return
		}
		p.startOn(i)
	}
}

func (p *plainQueue) startOn(i int) {
	p.starts.Add(p.starts, big.NewInt(p.cores[i]))
	p.work.Sub(p.work, big.NewInt(p.length))
	p.cores[i] += p.length
	if p.units--; p.units == 0 {
		p.work.SetInt64(0)
	}
}

func (p *plainQueue) release(n int64, work, rels *big.Int, at int64) {
	if n == 0 {
		return
	}
	if p.units == 0 {
		for i, t := range p.cores {
			p.cores[i] = max(t, at)
		}
	}
	p.units += n
	p.work.Add(p.work, work)
	p.rels.Add(p.rels, rels)
	p.measure()
}

func (p *plainQueue) measure() {
	if p.length = 0; p.units == 0 {
		return
	}
	if n := big.NewInt(p.units); p.work.Cmp(n) < 0 {
		p.work.Set(n)
	}
	mean := new(big.Int).Div(p.work, big.NewInt(p.units))
	p.length = MaxNow
	if mean.IsInt64() {
		p.length = min(MaxNow, mean.Int64())
	}
}

func (p *plainQueue) withdraw(b Batch) {
	n := min(b.Units, p.units)
	if n == 0 {
		return
	}
	work, rels := toBig(b.Work), toBig(b.Released)
	if n < b.Units {
		work = new(big.Int).Set(p.work)
		rels.Div(rels, big.NewInt(b.Units)).Mul(rels, big.NewInt(n))
	}
	p.units -= n
	p.rels.Sub(p.rels, rels)
	if p.work.Sub(p.work, work); p.units == 0 {
		p.work.SetInt64(0)
	}
	p.measure()
}

func (p *plainQueue) correct(now int64, by *big.Int) {
	if by.Sign() != 0 && p.units > 0 {
		p.work.Add(p.work, by)
		by = new(big.Int)
		if p.work.Cmp(big.NewInt(p.units)) < 0 {
			by.Sub(p.work, big.NewInt(p.units))
		}
		p.measure()
	}
	for by.Sign() < 0 && len(p.cores) > 0 { // off the core that frees last
		last := slices.Index(p.cores, slices.Max(p.cores))
		cut := min(p.cores[last]-now, new(big.Int).Neg(by).Int64())
		if cut <= 0 {
			return
		}
		p.cores[last] -= cut
		by = new(big.Int).Add(by, big.NewInt(cut))
	}
	if by.Sign() > 0 && len(p.cores) > 0 {
		if first := leastOf(p.cores); p.cores[first] > now {
			p.cores[first] += by.Int64()
		}
	}
}

func (p *plainQueue) resize(now, more int64) {
	for ; more < 0 && len(p.cores) > 0; more++ {
		i := leastOf(p.cores)
		p.away = append(p.away, max(p.cores[i], now))
		p.cores = slices.Delete(p.cores, i, i+1)
	}
	for ; more > 0; more-- {
		at := now
		if len(p.away) > 0 {
			last := slices.Index(p.away, slices.Max(p.away))
			at = max(at, p.away[last])
			p.away = slices.Delete(p.away, last, last+1)
		}
		p.cores = append(p.cores, at)
	}
}

func plainCoarsen(times []int64, now int64, limit int) []int64 {
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

// total is the wait if what waits starts one by one on the first free core.
func (p *plainQueue) total() *big.Int {
	if p.units > 0 && len(p.cores)+len(p.away) == 0 {
		return toBig(MaxWait)
	}
	q := &plainQueue{
		units: p.units, length: p.length, work: new(big.Int), starts: new(big.Int).Set(p.starts), cores: slices.Clone(p.cores),
	}
	for _, at := range p.away { // when it is thought to come back
		q.cores = append(q.cores, max(at+p.length, 2*p.clock-at))
	}
	for q.units > 0 {
		q.startOn(leastOf(q.cores))
	}
	if q.starts.Sub(q.starts, p.rels).Sign() < 0 {
		return new(big.Int)
	}
	return q.starts
}

func leastOf(times []int64) int { return slices.Index(times, slices.Min(times)) }

// drawChange draws what one entry does to a site with so many cores.
func drawChange(t *rapid.T, now, cores int64) (c Change) {
	draw := func(most int64, what string) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
	if draw(3, "resize?") == 0 {
		c.Cores = draw(6, "cores") - cores
	}
	for range draw(2, "new") {
		c.New.Add(draw(30, "units"), 1+draw(60, "length"), now)
	}
	if draw(3, "past?") == 0 {
		c.Past.Add(1+draw(4, "units"), 1+draw(60, "length"), max(0, now-draw(100, "ago")))
	}
	if draw(3, "gone?") == 0 {
		c.Gone.Add(1+draw(20, "units"), 1+draw(60, "length"), max(0, now-draw(100, "ago")))
	}
	if draw(2, "correct?") == 0 {
		c.Corrected = Int64(draw(400, "by") - 200)
	}
	return c
}

// TestQueueIsNaive compares every number of a queue with one that walks from
// unit to unit, over random changes, and after a copy and a restored one took
// over.
func TestQueueIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, p, now := new(Queue), newPlain(), int64(0)
		limit := rapid.SampledFrom([]int{2, 5, 1000}).Draw(t, "limit")
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now += rapid.Int64Range(0, 80).Draw(t, "later")
			c := drawChange(t, now, int64(len(p.cores)))
			before := q.Clone().State()
			frozen := q.Clone()
			if q.Step(now, &c, limit); !equalState(frozen.State(), before) {
				t.Fatal("a step changed a copy")
			}
			p.step(now, &c, limit)
			compareQueue(t, q, p)
			if rapid.Bool().Draw(t, "restore") {
				r, err := RestoreQueue(q.Clone().State())
				if err != nil {
					t.Fatalf("%v: %+v", err, q.State())
				}
				q = r
			}
			q.Count()
			later := q.Clone()
			later.Step(now+rapid.Int64Range(0, 500).Draw(t, "wait"), &Change{}, 1000)
			if len(q.away) == 0 && q.work == Mul64(q.units, q.length) && later.Total() != q.Total() {
				t.Fatalf("total %v became %v with time alone", q.Total(), later.Total())
			}
		}
	})
}

func compareQueue(t *rapid.T, q *Queue, p *plainQueue) {
	t.Helper()
	if q.units != p.units || q.length != p.length || toBig(q.work).Cmp(p.work) != 0 {
		t.Fatalf("%d units of %d, %v together; naively %d of %d, %v", q.units, q.length, q.work, p.units, p.length, p.work)
	}
	if want := new(big.Int).Sub(p.starts, p.rels); toBig(q.settled).Cmp(want) != 0 {
		t.Fatalf("settled %v, naively %v", q.settled, want)
	}
	for _, v := range []struct {
		f slots
		p []int64
	}{{q.free, p.cores}, {q.away, p.away}} {
		want := slices.Sorted(slices.Values(v.p))
		if got := unfold(v.f); !slices.Equal(got, want) {
			t.Fatalf("cores free at %v, naively at %v", got, want)
		}
	}
	if got, want := toBig(q.Total()), p.total(); got.Cmp(want) != 0 {
		t.Fatalf("total %v, naively %v", got, want)
	}
}

func unfold(f slots) (out []int64) {
	for _, s := range f {
		for range s.Cores {
			out = append(out, s.At)
		}
	}
	return out
}

func equalState(a, b QueueState) bool {
	return a.Clock == b.Clock && a.Units == b.Units && a.Length == b.Length && a.Work == b.Work && a.Settled == b.Settled &&
		slices.Equal(a.Free, b.Free) && slices.Equal(a.Away, b.Away)
}
