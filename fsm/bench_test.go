package fsm

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// The figures' grid: growth is read from one column to the next.
var (
	benchSites   = []int{10, 100, 1000}
	benchWaiting = []int{1_000, 10_000, 100_000, 1_000_000}
	benchBatches = []int{1, 64, 1024}
)

// crowd is a state in which a number of 1-core tasks wait, as one array a site or as separate jobs.
type crowd struct {
	*world
	waiting  int
	separate bool
	turn     int // index of the site that submits next
}

// crowds runs f for every size of the grid. One state serves all batches: what they change is small compared
// with it, and the queue is kept full.
func crowds(b *testing.B, f func(b *testing.B, c *crowd)) {
	for _, sites := range benchSites {
		for _, waiting := range benchWaiting {
			for _, kind := range []string{"arrays", "jobs"} {
				b.Run(fmt.Sprintf("sites=%d/waiting=%d/%s", sites, waiting, kind), func(b *testing.B) {
					f(b, newCrowd(b, sites, waiting, kind == "jobs"))
				})
			}
		}
	}
}

func newCrowd(b *testing.B, sites, waiting int, separate bool) *crowd {
	names := make([]string, sites)
	for i := range names {
		names[i] = fmt.Sprintf("s%05d", i)
	}
	c := &crowd{world: newWorld(b, benchParams(sites), names...), separate: separate}
	c.more(waiting)
	return c
}

// benchParams returns parameters that keep a thousand ended jobs over all sites.
func benchParams(sites int) command.Params {
	p := command.DefaultParams()
	p.PreferOwn, p.RetainJobs = false, int64(max(1, 1000/sites))
	return p
}

// more makes n more tasks wait, an equal share of each site's.
func (c *crowd) more(n int) {
	c.waiting += n
	for range c.s.sites {
		c.enter(min(c.waiting-int(c.s.waiting), max(1, n/len(c.s.sites))))
	}
	c.enter(c.waiting - int(c.s.waiting))
	runtime.GC() // do not count what the last size left
}

// enter submits n tasks of the next site.
func (c *crowd) enter(n int) {
	if n <= 0 {
		return
	}
	x := c.s.sites[c.turn%len(c.s.sites)].name
	c.turn++
	if !c.separate {
		c.submit(x, c.job(x, uint32(n)))
		return
	}
	for ; n > 0; n -= 1000 {
		jobs := make([]command.JobSpec, 0, 1000)
		for range min(n, 1000) {
			jobs = append(jobs, c.job(x, 1))
		}
		c.submit(x, jobs...)
	}
}

// inBatches runs f once for every batch size. f applies one entry of at most that many operations, with the timer
// stopped while it prepares it, and returns how many it did. The queue is refilled outside the measured time.
func (c *crowd) inBatches(b *testing.B, f func(b *testing.B, at, batch int) int) {
	for _, batch := range benchBatches {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; n < b.N; {
				b.StopTimer()
				if left := int(c.s.waiting); left < max(batch, c.waiting-c.waiting/8) {
					c.enter(max(batch, c.waiting) - left)
				}
				n += f(b, n, min(batch, b.N-n))
			}
		})
	}
}

// timed applies one entry while the timer runs.
func (c *crowd) timed(b *testing.B, cmds ...command.Command) {
	b.StartTimer()
	c.apply(cmds...)
	b.StopTimer()
}

// BenchmarkSubmit submits jobs of one task, from all sites in turn: one op is one job. The jobs stay, so the
// smallest queue grows to some thousands.
func BenchmarkSubmit(b *testing.B) {
	crowds(b, func(b *testing.B, c *crowd) {
		c.inBatches(b, func(b *testing.B, at, batch int) int {
			cmds := make([]command.Command, 0, batch)
			for i := range batch {
				x := c.s.sites[(at+i)%len(c.s.sites)].name
				cmds = append(cmds, c.cmd(x, &command.Submit{Jobs: []command.JobSpec{c.job(x, 1)}}))
			}
			c.timed(b, cmds...)
			return batch
		})
	})
}

// BenchmarkMatch assigns waiting tasks to machines offered by one command: one
// op is one assignment.
func BenchmarkMatch(b *testing.B) {
	crowds(b, func(b *testing.B, c *crowd) {
		c.inBatches(b, func(b *testing.B, at, batch int) int {
			x := c.s.sites[at%len(c.s.sites)].name
			c.drain(x, batch)
			cmd := c.cmd(x, c.offering(x, int64(c.s.byName[x].live.n+batch)))
			c.base++
			before := c.s.decisions
			c.timed(b, cmd)
			if got := int(c.s.decisions - before); got != batch {
				b.Fatalf("%d of %d assigned", got, batch)
			}
			return batch
		})
	})
}

// drain ends what a site runs if it could not run more besides. Nothing else here ends it, and the site would be
// full (MaxHeld) after some millions of assignments.
func (c *crowd) drain(site string, more int) {
	if c.s.byName[site].live.n+more <= command.MaxHeld {
		return
	}
	c.must(site, c.offering(site, 0))
	for part := range slices.Chunk(c.s.Assignments(site), command.MaxReports) {
		ends := make([]command.Ended, len(part))
		for i, a := range part {
			ends[i] = ended(a, command.Succeeded, 1)
		}
		c.must(site, &command.Complete{Attempts: ends})
	}
}

// running is how many tasks run while BenchmarkTurnover ends some.
const running = 4096

// BenchmarkTurnover completes running tasks, each of which frees the core on
// which the same entry starts the next one: one op is one completion and one
// assignment.
func BenchmarkTurnover(b *testing.B) {
	crowds(b, func(b *testing.B, c *crowd) {
		c.more(running)
		sites := len(c.s.sites)
		for i, x := range c.s.sites {
			c.must(x.name, c.offering(x.name, int64((running+sites-1-i)/sites)))
		}
		c.waiting -= running
		c.inBatches(b, func(b *testing.B, at, batch int) int {
			cmds := c.completions(at, batch)
			c.base++
			c.timed(b, cmds...)
			return batch
		})
	})
}

// completions ends a number of running tasks, spread over the sites.
func (w *world) completions(from, n int) []command.Command {
	ends, live := map[int][]command.Ended{}, map[int][]uint64{}
	sites := len(w.s.sites)
	for k, x := range w.s.sites {
		live[k] = w.s.slotsOf(x, 0)
	}
	for i := 0; n > 0 && i < 4096; i++ {
		k := (from + i) % sites
		at := len(ends[k])
		if at >= len(live[k]) {
			continue
		}
		a := w.s.attempts.Get(live[k][at])
		j := w.s.jobs.Get(a.seq)
		id := command.JobID{Site: w.s.sites[j.owner].name, Num: j.num}
		ends[k] = append(ends[k], command.Ended{
			AttemptRef: command.AttemptRef{Job: id, Task: a.task, Attempt: a.attempt, Token: a.token}, RunMs: 1,
		})
		n--
	}
	var cmds []command.Command
	for k := range sites {
		if len(ends[k]) > 0 {
			cmds = append(cmds, w.cmd(w.s.sites[k].name, &command.Complete{Attempts: ends[k]}))
		}
	}
	return cmds
}
