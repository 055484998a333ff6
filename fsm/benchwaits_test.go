package fsm

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/sched"
)

// BenchmarkPolicies has a federation of sites with 4096 cores together complete
// running tasks, each of which frees the core on which the same entry starts the
// next one, and submit as many: one op is one submission, one completion and one
// assignment. What was declared, and so estimated, is twice what tasks run.
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
	m := &mill{newWorld(b, benchParams(), names...), sites}
	m.must(names[0], &Raise{Version: Version})
	for i, x := range names {
		m.must(x, m.offering(x, int64((running+sites-1-i)/sites)))
	}
	if policy != m.s.params.Policy {
		m.use(names[0], policy)
	}
	for i := range 100 { // they start, and end, at different times
		m.base += millRunMs / 100
		for range 2 * running / 100 / 10 {
			x := names[i%sites]
			m.submit(x, m.work(x, 10))
		}
	}
	runtime.GC()
	return m
}

func (m *mill) work(site string, count uint32) JobSpec {
	j := m.job(site, count)
	j.TimeoutMs = 2 * millRunMs
	return j
}

func (m *mill) run(b *testing.B, batch int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	took := int64(0)
	for n := 0; n < b.N; n += batch {
		size := min(batch, b.N-n)
		cmds := m.completions(n, size)
		for i := range cmds {
			for k := range cmds[i].Body.(*Complete).Attempts {
				cmds[i].Body.(*Complete).Attempts[k].RunMs = millRunMs
			}
		}
		for i := range size {
			x := m.s.sites[(n+i)%m.sites].name
			cmds = append(cmds, m.cmd(x, &Submit{Jobs: []JobSpec{m.work(x, 1)}}))
		}
		m.base += max(1, int64(size)*millRunMs/running)
		before := threadTime(b)
		b.StartTimer()
		m.apply(cmds...)
		b.StopTimer()
		took += threadTime(b) - before
	}
	b.ReportMetric(float64(took)/float64(b.N), "cpu-ns/op")
}

// threadTime is the processor time of this thread, in ns: what else runs on the
// machine is not in it.
func threadTime(b *testing.B) int64 {
	const thisThread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
