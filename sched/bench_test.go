package sched

import (
	"fmt"
	"testing"
	"unsafe"
)

// busy is a federation of n sites with eight cores each, which become free at
// different times, and an hour's work waiting at each.
func busy(policy string, n int) *Coalitions {
	c := NewCoalitions(policy, 0, 0, 0)
	for range n {
		c.Join(0, 0)
	}
	step := func(now int64, o int, d Change) {
		changes := make([]Change, n)
		changes[o] = d
		c.Step(now, changes, []int32{int32(o)}, 0)
	}
	for o := range n {
		step(0, o, Change{Cores: 8})
	}
	for i := range int64(8 * n) {
		var d Change
		d.New.Add(1, hour, 0)
		step(i*hour/int64(8*n), int(i)%n, d)
	}
	for o := range n {
		var d Change
		d.New.Add(8, hour, 0)
		step(hour-1, o, d)
	}
	return c
}

const hour = 3_600_000

var benchSites = map[string][]int{Alone: {5, 8, 12, 16, 100}, CE: {5, 8, 12, 16, 100}, Shapley: {5, 8, 12}}

func benchPolicies(b *testing.B, f func(b *testing.B, c *Coalitions, n int)) {
	for _, policy := range Projected() {
		for _, n := range benchSites[policy] {
			b.Run(fmt.Sprintf("policy=%s/sites=%d", policy, n), func(b *testing.B) {
				c := busy(policy, n)
				b.ReportAllocs()
				b.ResetTimer()
				f(b, c, n)
			})
		}
	}
}

// BenchmarkArrival releases a job of 100 tasks: what an entry with it costs.
func BenchmarkArrival(b *testing.B) { benchPolicies(b, arrive) }

func arrive(b *testing.B, c *Coalitions, n int) {
	changes := make([]Change, n)
	for i := range b.N {
		o := i % n
		changes[o].New.Add(100, hour, 0)
		c.Step(hour+int64(i), changes, []int32{int32(o)}, 0)
		changes[o] = Change{}
	}
}

// BenchmarkCompletion corrects the length of a task.
func BenchmarkCompletion(b *testing.B) {
	benchPolicies(b, func(b *testing.B, c *Coalitions, n int) {
		changes := make([]Change, n)
		for i := range b.N {
			o := i % n
			changes[o].Corrected = Int64(int64(i%7)*1000 - 3000)
			c.Step(hour+int64(i), changes, []int32{int32(o)}, 0)
			changes[o] = Change{}
		}
	})
}

// BenchmarkShares computes all fair shares after a change: what the first decision
// of an entry costs if every site has something waiting.
func BenchmarkShares(b *testing.B) {
	benchPolicies(b, func(b *testing.B, c *Coalitions, n int) {
		for i := range b.N {
			b.StopTimer()
			arriveOnce(c, n, i)
			b.StartTimer()
			for o := range n {
				c.Count(o)
			}
		}
		b.ReportMetric(bytesOf(c), "B/queues")
	})
}

// bytesOf is the memory of all queues.
func bytesOf(c *Coalitions) float64 {
	bytes := 0
	for q := range c.All {
		s := q.State()
		bytes += int(unsafe.Sizeof(*q)) + (cap(s.Free)+cap(s.Away))*int(unsafe.Sizeof(Slot{}))
	}
	return float64(bytes)
}

func arriveOnce(c *Coalitions, n, i int) {
	changes := make([]Change, n)
	for o := range changes {
		changes[o].Corrected = Int64(int64(i%3) - 1)
	}
	all := make([]int32, n)
	for o := range all {
		all[o] = int32(o)
	}
	c.Step(hour+int64(i), changes, all, 0)
}

// BenchmarkRank ranks a site whose share is known: each further decision.
func BenchmarkRank(b *testing.B) {
	benchPolicies(b, func(b *testing.B, c *Coalitions, n int) {
		p, _ := New(c.Policy(), Partial)
		for o := range n {
			c.Count(o)
		}
		a := Account{Projection: Projection{
			Waits: Waits{Started: Int64(1 << 40), Units: 100, Released: Int64(1 << 30)},
			Scale: c.Scale(), Ahead: c.Total(), Queued: 1000,
		}}
		b.ResetTimer()
		for i := range b.N {
			a.Projection.Fair = c.Fair(i % n)
			p.Rank(&a, hour)
		}
	})
}
