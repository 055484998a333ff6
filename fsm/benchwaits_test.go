package fsm

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// BenchmarkPolicies has a federation of sites with 4096 cores in total complete running tasks, each of which
// frees the core on which the same entry starts the next one, and submit as many. One op is one submission, one
// completion and one assignment. The declared, and so estimated, length is twice what tasks run.
func BenchmarkPolicies(b *testing.B) {
	for _, c := range []struct {
		sites    int
		policies []string
	}{
		{5, append([]string{sched.SimplDirect}, sched.Projected()...)},
		{12, append([]string{sched.SimplDirect}, sched.Projected()...)},
		{100, []string{sched.SimplDirect, sched.Alone, sched.CE}},
	} {
		for _, policy := range c.policies {
			for _, batch := range []int{1, 64, 1024} {
				b.Run(fmt.Sprintf("sites=%d/policy=%s/batch=%d", c.sites, policy, batch), func(b *testing.B) {
					newMill(b, c.sites, policy).run(b, batch)
				})
			}
		}
	}
}

// mill is a federation that works at its limit.
type mill struct {
	*world
	sites int
}

const millRunMs = 60_000

func newMill(b *testing.B, sites int, policy string) *mill {
	names := make([]string, sites)
	for i := range names {
		names[i] = fmt.Sprintf("s%05d", i)
	}
	m := &mill{newWorld(b, benchParams(sites), names...), sites}
	for i, x := range names {
		m.must(x, m.offering(x, int64((running+sites-1-i)/sites)))
	}
	if policy != m.s.params.Policy {
		m.use(names[0], policy)
	}
	for i := range 100 { // they start and end at different times
		m.base += millRunMs / 100
		for range 2 * running / 100 / 10 {
			x := names[i%sites]
			m.submit(x, m.work(x, 10))
		}
	}
	runtime.GC()
	return m
}

func (m *mill) work(site string, count uint32) command.JobSpec {
	j := m.job(site, count)
	j.TimeoutMs = 2 * millRunMs
	return j
}

func (m *mill) run(b *testing.B, batch int) {
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	var took []time.Duration
	for n := 0; n < b.N; n += batch {
		size := min(batch, b.N-n)
		cmds := m.ends(n, size)
		for i := range size {
			x := m.s.sites[(n+i)%m.sites].name
			cmds = append(cmds, m.cmd(x, &command.Submit{Jobs: []command.JobSpec{m.work(x, 1)}}))
		}
		m.base += max(1, int64(size)*millRunMs/running)
		b.StartTimer()
		began := time.Now()
		m.apply(cmds...)
		took = append(took, time.Since(began))
		b.StopTimer()
	}
	reportMedian(b, took, batch)
}

// ends ends a number of tasks, of one site after another, each site's oldest first.
func (m *mill) ends(from, n int) (cmds []command.Command) {
	for i := range m.sites {
		x := m.s.sites[(from+i)%m.sites]
		slots := m.s.slotsOf(x, 0)
		share := min(len(slots), (n+m.sites-1-i)/m.sites)
		var ends []command.Ended
		for _, slot := range slots[len(slots)-share:] {
			a := m.s.attempts.Get(slot)
			j := m.s.jobs.Get(a.seq)
			id := command.JobID{Site: m.s.sites[j.owner].name, Num: j.num}
			ends = append(ends, command.Ended{
				AttemptRef: command.AttemptRef{Job: id, Task: a.task, Attempt: a.attempt, Token: a.token},
				RunMs:      millRunMs,
			})
		}
		if share > 0 {
			cmds = append(cmds, m.cmd(x.name, &command.Complete{Attempts: ends}))
		}
	}
	return cmds
}

// BenchmarkSwitch makes a federation with a number of waiting jobs switch to a policy of projected waits: one
// entry whose cost grows with the number of jobs.
func BenchmarkSwitch(b *testing.B) {
	for _, jobs := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) { benchSwitch(b, jobs) })
	}
}

func benchSwitch(b *testing.B, jobs int) {
	w := newWaiting(b, sched.SimplDirect, 0, "a", "b")
	for range jobs / 1000 {
		specs := make([]command.JobSpec, 1000)
		for i := range specs {
			specs[i] = w.job("a", 1)
		}
		w.submit("a", specs...)
	}
	var took []time.Duration
	for b.ResetTimer(); b.Loop(); {
		began := time.Now()
		w.use("a", sched.CE)
		took = append(took, time.Since(began))
		w.use("a", sched.SimplDirect)
	}
	reportMedian(b, took, 1)
}

// reportMedian reports the median time of entries of a number of operations: other load on the machine makes
// single entries longer, but not the median.
func reportMedian(b *testing.B, took []time.Duration, ops int) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(ops), "median-ns/op")
}
