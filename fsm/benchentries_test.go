package fsm

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// BenchmarkEntries gives a large state entries that once took seconds: one op is a command, or an entry of
// commands, with the entries that continue it. It reports the longest of these, their sum, their number, and the
// most steps in one. With -short: a tenth of the size.
func BenchmarkEntries(b *testing.B) {
	for _, c := range []struct {
		name string
		of   func(b *testing.B, size int) (w *world, cmds []command.Command)
	}{
		{"decline", benchDecline},
		{"offers", benchOffers},
		{"lost", benchLost},
		{"leave", benchLeave},
		{"register", benchRegister},
		{"cancel", benchCancel},
		{"departure", benchDeparture},
		{"reservations", benchReservations},
		{"fresh", benchFresh},
		{"barred", benchBarred},
		{"retired", benchRetired},
		{"outlived", benchOutlived},
		{"switch", benchNewPolicy},
		{"apart", benchApart},
		{"records", benchRecords},
		{"returns", benchReturns},
		{"priorities", benchPriorities},
		{"sites", benchManySites},
		{"selectors", benchSelectors},
		{"declined", benchDeclined},
		{"starving", benchStarving},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := 10
			if testing.Short() {
				size = 1
			}
			for range b.N {
				b.StopTimer()
				w, cmds := c.of(b, size)
				runtime.GC()
				b.StartTimer()
				w.report(b, cmds)
			}
		})
	}
}

func (w *world) report(b *testing.B, cmds []command.Command) {
	b.Helper()
	var worst, busiest, total time.Duration
	var steps uint64
	n := 0
	for batch := (&command.Batch{Term: w.term, Elapsed: w.base, Commands: cmds}); n == 0 || w.s.Pending(); n++ {
		began, cpu := time.Now(), processorTime()
		if _, err := w.s.Apply(batch); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		worst, total, steps = max(worst, took), total+took, max(steps, w.s.Steps().Used)
		busiest = max(busiest, processorTime()-cpu)
		batch = &command.Batch{Term: w.term, Elapsed: w.base}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64(busiest.Microseconds())/1000, "worst-cpu-ms")
	b.ReportMetric(float64(total.Microseconds())/1000, "total-ms")
	b.ReportMetric(float64(n), "entries")
	b.ReportMetric(float64(steps), "steps")
}

// processorTime returns how much processor time this process has used. A loaded machine changes it less than the
// clock.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchHeld makes some sites run as many tasks as one may, and returns the offers that lead to it unless give is
// set.
func benchHeld(b *testing.B, sites int, policy string, give bool) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a")
	if policy != "" {
		w.use("a", policy)
	}
	for left := sites * command.MaxHeld; left > 0; left -= command.MaxCount {
		j := w.job("a", uint32(min(left, command.MaxCount)))
		j.Need.MilliCPU = 1
		w.submit("a", j)
	}
	var cmds []command.Command
	for i := range sites {
		x := fmt.Sprintf("s%03d", i)
		w.register(x)
		w.offer[x]++
		cmds = append(cmds, w.cmd(x, &command.Offer{
			Version:  1,
			Machines: []command.Machine{{Name: "m", Resources: command.Resources{MilliCPU: command.MaxMilliCPU}}},
		}))
	}
	if give {
		w.apply(cmds...)
	}
	return w, cmds
}

func benchDecline(b *testing.B, size int) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a", "b")
	w.submit("a", w.job("a", uint32(size*command.MaxReports/10)))
	w.must("b", w.offering("b", command.MaxReports))
	d := &command.Decline{Reason: "busy"}
	for _, a := range w.s.Assignments("b") {
		d.Attempts = append(d.Attempts, a.AttemptRef)
	}
	return w, []command.Command{w.cmd("b", d)}
}

func benchOffers(b *testing.B, size int) (*world, []command.Command) {
	return benchHeld(b, max(1, 25*size/10), "", false)
}

func benchLost(b *testing.B, size int) (*world, []command.Command) {
	w, _ := benchHeld(b, max(1, 25*size/10), "", true)
	var cmds []command.Command
	for _, x := range w.s.sites[1:] {
		cmds = append(cmds, w.cmd("a", &command.SiteLost{Site: x.name, Incarnation: 1, Term: 1}))
	}
	return w, cmds
}

func benchLeave(b *testing.B, _ int) (*world, []command.Command) {
	w, _ := benchHeld(b, 1, "", true)
	return w, []command.Command{w.cmd("s000", &command.Leave{})}
}

func benchRegister(b *testing.B, _ int) (*world, []command.Command) {
	w, _ := benchHeld(b, 1, "", true)
	return w, []command.Command{w.registration("s000", nil, nil)}
}

func benchCancel(b *testing.B, size int) (*world, []command.Command) {
	w, _ := benchHeld(b, max(1, 12*size/10), "", true)
	return w, []command.Command{w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})}
}

// endsOf reports the ends of some of what a site runs, each with a different exit code, so that their job keeps
// them apart.
func (w *world) endsOf(site string, which func(Assignment) bool) (cmds []command.Command) {
	var ends []command.Ended
	for _, a := range w.s.Assignments(site) {
		if which(a) {
			e := ended(a, command.Failed, 1)
			e.ExitCode = int32(a.Task)
			ends = append(ends, e)
		}
	}
	for part := range slices.Chunk(ends, command.MaxReports) {
		cmds = append(cmds, w.cmd(site, &command.Complete{Attempts: part}))
	}
	return cmds
}

// benchApart ends half of a job's tasks apart from each other; then others between them end, as many as fit into
// an entry of a leader.
func benchApart(b *testing.B, size int) (*world, []command.Command) {
	const room = 25_000
	w, _ := benchHeld(b, max(1, 12*size/10), "", true)
	isEven := func(a Assignment) bool { return a.Task%2 == 0 }
	for _, x := range w.s.sites[1:] {
		for _, c := range w.endsOf(x.name, isEven) {
			w.apply(c)
		}
	}
	n := 0
	return w, w.endsOf("s000", func(Assignment) bool { n++; return n <= room })
}

// benchRecords ends all tasks of the largest job that keeps a record of each, the last one first.
func benchRecords(b *testing.B, _ int) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a", "b")
	w.must("b", w.offering("b", DetailTasks))
	w.submit("a", w.job("a", DetailTasks))
	cmds := w.endsOf("b", func(Assignment) bool { return true })
	ends := cmds[0].Body.(*command.Complete).Attempts
	slices.SortFunc(ends, func(a, b command.Ended) int { return int(b.Task) - int(a.Task) })
	return w, cmds
}

// benchReturns loses a site whose jobs return between those of another site.
func benchReturns(b *testing.B, size int) (*world, []command.Command) {
	w := newWorld(b, benchParams(10_000), "a", "b", "c")
	for left := 2 * size * command.MaxHeld / 10; left > 0; left -= command.MaxJobsPerSubmit {
		jobs := make([]command.JobSpec, min(left, command.MaxJobsPerSubmit))
		for i := range jobs {
			jobs[i] = w.job("a", 1)
		}
		w.submit("a", jobs...)
	}
	w.apply(w.cmd("b", w.offering("b", command.MaxHeld)), w.cmd("c", w.offering("c", command.MaxHeld)))
	w.apply(w.cmd("a", &command.SiteLost{Site: "b", Incarnation: 1, Term: 1}))
	return w, []command.Command{w.cmd("a", &command.SiteLost{Site: "c", Incarnation: 1, Term: 1})}
}

// benchJobs makes one site's jobs of one task wait.
func benchJobs(b *testing.B, size int) *world {
	w := newWorld(b, benchParams(10_000), "a", "b")
	for range size * 25 {
		jobs := make([]command.JobSpec, command.MaxJobsPerSubmit)
		for i := range jobs {
			jobs[i] = w.job("a", 1)
		}
		w.submit("a", jobs...)
	}
	return w
}

func benchDeparture(b *testing.B, size int) (*world, []command.Command) {
	w := benchJobs(b, size)
	w.must("a", &command.Leave{})
	return w, []command.Command{w.cmd("b", &command.Forget{Site: "a"})}
}

func benchNewPolicy(b *testing.B, size int) (*world, []command.Command) {
	w := benchJobs(b, size)
	p := w.s.params
	p.Policy = "ALONE"
	return w, []command.Command{w.cmd("a", &command.SetParams{Params: p})}
}

func benchOutlived(b *testing.B, size int) (*world, []command.Command) {
	w, _ := benchHeld(b, max(1, size), "ALONE", true)
	for range 2 * 60 {
		if w.base += command.MaxStep; w.base > priorMs {
			break
		}
		w.apply()
	}
	return w, nil
}

// benchMachines has 100 sites' machines with 4 cores and 1 GiB, or 1 core and 4 GiB, in turn.
func benchMachines(b *testing.B, size int, p command.Params) *world {
	w := newWorld(b, p, "a")
	for i := range 100 {
		x := fmt.Sprintf("s%02d", i)
		w.register(x)
		w.offer[x]++
		o := &command.Offer{Version: 1}
		for k := range size * 100 {
			o.Machines = append(o.Machines, command.Machine{
				Name: fmt.Sprintf("m%04d", k),
				Resources: [...]command.Resources{
					{MilliCPU: 4000, MemMiB: 1024, GPU: 0}, {MilliCPU: 1000, MemMiB: 4096, GPU: 0},
				}[k%2],
			})
		}
		w.must(x, o)
	}
	return w
}

// between returns a job that no machine of benchMachines can run, though each part of its need fits some of them.
func between(w *world, i int) command.JobSpec {
	j := w.job("a", 1)
	j.Need = command.Resources{MilliCPU: 2000 + int64(i), MemMiB: 2048}
	return j
}

func benchReservations(b *testing.B, size int) (*world, []command.Command) {
	w := benchMachines(b, size, command.DefaultParams())
	for i := range MaxShapes {
		w.submit("a", between(w, i))
	}
	w.at(100_000)
	return w, nil
}

func benchFresh(b *testing.B, size int) (*world, []command.Command) {
	w := benchMachines(b, size, benchParams(10_000))
	var jobs []command.JobSpec
	for i := range MaxShapes {
		jobs = append(jobs, between(w, i))
	}
	return w, []command.Command{w.cmd("a", &command.Submit{Jobs: jobs})}
}

func benchBarred(b *testing.B, size int) (*world, []command.Command) {
	w := benchMachines(b, size, benchParams(10_000))
	w.register("big")
	w.must("big", w.offering("big", 3))
	w.submit("a", between(w, 0), between(w, 0))
	w.must("big", &command.Decline{Attempts: []command.AttemptRef{w.s.Assignments("big")[0].AttemptRef}})
	return w, []command.Command{w.cmd("a", &command.Submit{Jobs: []command.JobSpec{between(w, 0)}})}
}

// benchRetired has as many ranges of numbers of departed jobs as there may be jobs.
func benchRetired(b *testing.B, size int) (*world, []command.Command) {
	p := benchParams(10_000)
	p.RetainJobs, p.RetainMs = 0, 0
	w := newWorld(b, p, "a")
	x := w.s.byName["a"]
	for i := range uint64(size * 400_000) {
		x.retired = append(x.retired, store.Span{From: 2*i + 2, To: 2*i + 2})
	}
	x.maxNum = x.retired[len(x.retired)-1].To
	w.num["a"] = x.maxNum + 1
	j := w.job("a", 1)
	w.submit("a", j)
	return w, []command.Command{w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: j.Num}, Task: -1})}
}
