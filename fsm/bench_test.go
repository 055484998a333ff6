package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// fill makes a state of so many sites and so many 1-core tasks waiting, as arrays
// (one a site) or as separate jobs.
func fill(b *testing.B, sites, waiting int, separate bool, p Params) *world {
	names := make([]string, sites)
	for i := range names {
		names[i] = fmt.Sprintf("s%05d", i)
	}
	w := newWorld(b, p, names...)
	per := max(min(1, waiting), waiting/sites)
	for i, x := range names {
		if i*per >= waiting {
			break
		}
		if !separate {
			w.submit(x, w.job(x, uint32(per)))
			continue
		}
		for left := per; left > 0; left -= 1000 {
			jobs := make([]JobSpec, 0, 1000)
			for range min(left, 1000) {
				jobs = append(jobs, w.job(x, 1))
			}
			w.submit(x, jobs...)
		}
	}
	return w
}

// sizes are the grid of the issue: sites, waiting tasks, arrays or jobs.
func sizes(b *testing.B, f func(b *testing.B, sites, waiting int, separate bool)) {
	for _, sites := range []int{10, 100, 1000} {
		for _, waiting := range []int{1_000, 1_000_000} {
			for _, separate := range []bool{false, true} {
				kind := "array"
				if separate {
					kind = "jobs"
				}
				b.Run(fmt.Sprintf("sites=%d/waiting=%d/%s", sites, waiting, kind), func(b *testing.B) {
					f(b, sites, waiting, separate)
				})
			}
		}
	}
}

func benchParams() Params {
	p := DefaultParams()
	p.PreferOwn, p.RetainJobs = false, 1000
	return p
}

var batches = []int{1, 64, 1024}

// BenchmarkSubmit enters jobs of one task; ns/op is per job.
func BenchmarkSubmit(b *testing.B) {
	sizes(b, func(b *testing.B, sites, waiting int, separate bool) {
		w := fill(b, sites, waiting, separate, benchParams())
		for _, batch := range batches {
			b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
				b.ReportAllocs()
				for n := 0; n < b.N; n += batch {
					cmds := make([]Command, 0, batch)
					for i := range min(batch, b.N-n) {
						x := w.s.sites[(n+i)%sites].name
						cmds = append(cmds, w.cmd(x, &Submit{Jobs: []JobSpec{w.job(x, 1)}}))
					}
					w.apply(cmds...)
				}
			})
		}
	})
}

// BenchmarkTurnover completes running tasks, each of which frees the core on
// which the same entry starts the next one: one op is one completion and one
// assignment. The queue is refilled outside the measured time.
func BenchmarkTurnover(b *testing.B) {
	sizes(b, func(b *testing.B, sites, waiting int, separate bool) {
		for _, batch := range batches {
			b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
				w := busyWorld(b, sites, waiting, separate)
				b.ReportAllocs()
				b.ResetTimer()
				for n := 0; n < b.N; n += batch {
					b.StopTimer()
					if w.s.waiting < uint64(batch) {
						w = busyWorld(b, sites, waiting, separate)
					}
					cmds := w.completions(n, min(batch, b.N-n))
					w.base++
					b.StartTimer()
					w.apply(cmds...)
				}
			})
		}
	})
}

// busyWorld is fill with about 2048 of the tasks running.
func busyWorld(b *testing.B, sites, waiting int, separate bool) *world {
	w := fill(b, sites, max(waiting, 4096), separate, benchParams())
	for _, x := range w.s.sites {
		w.must(x.name, w.offering(x.name, int64(max(2, 2048/sites))))
	}
	return w
}

// completions ends so many running tasks, spread over the sites.
func (w *world) completions(from, n int) []Command {
	ends := map[int][]Ended{}
	sites := len(w.s.sites)
	for i := 0; n > 0 && i < 4096; i++ {
		k := (from + i) % sites
		x := w.s.sites[k]
		at := len(ends[k])
		if at >= len(x.live) {
			continue
		}
		a := w.s.attempts.get(x.live[at])
		j := w.s.jobs.get(a.seq)
		id := JobID{w.s.sites[j.owner].name, j.num}
		ends[k] = append(ends[k], Ended{AttemptRef: AttemptRef{id, a.task, a.attempt, a.token}, RunMs: 1})
		n--
	}
	var cmds []Command
	for k := range sites {
		if len(ends[k]) > 0 {
			cmds = append(cmds, w.cmd(w.s.sites[k].name, &Complete{Attempts: ends[k]}))
		}
	}
	return cmds
}

// BenchmarkMatch assigns waiting tasks to machines offered by one command: one
// op is one assignment.
func BenchmarkMatch(b *testing.B) {
	sizes(b, func(b *testing.B, sites, waiting int, separate bool) {
		for _, batch := range batches {
			b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
				w := fill(b, sites, waiting, separate, benchParams())
				b.ReportAllocs()
				b.ResetTimer()
				for n := 0; n < b.N; {
					b.StopTimer()
					if w.s.waiting < uint64(batch) {
						w = fill(b, sites, waiting, separate, benchParams())
					}
					x := w.s.sites[n%sites].name
					cmd := w.cmd(x, w.offering(x, int64(len(w.s.byName[x].live)+batch)))
					w.base++
					b.StartTimer()
					before := w.s.decisions
					w.apply(cmd)
					n += int(w.s.decisions - before)
				}
			})
		}
	})
}

// BenchmarkSnapshot measures 1e6 separate waiting jobs of 1000 sites, with one
// payload for all and with 64 bytes of its own for each; heapB/job includes the
// payload.
func BenchmarkSnapshot(b *testing.B) {
	b.Run("shared", func(b *testing.B) { benchSnapshot(b, false) })
	b.Run("own", func(b *testing.B) { benchSnapshot(b, true) })
}

func benchSnapshot(b *testing.B, own bool) {
	const jobs, sites = 1_000_000, 1000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := fill(b, sites, 0, true, benchParams())
	for _, x := range w.s.sites {
		batch := make([]JobSpec, 0, jobs/sites)
		for range jobs / sites {
			j := w.job(x.name, 1)
			if own {
				j.Payload = fmt.Appendf(nil, "%64s", JobID{x.name, j.Num})
			}
			batch = append(batch, j)
		}
		w.submit(x.name, batch...)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perJob := float64(after.HeapAlloc-before.HeapAlloc) / jobs
	snapshot := snapshotOf(b, w.s)
	b.Run("pause", func(b *testing.B) {
		for b.Loop() {
			w.s.Snapshot().Release()
		}
		b.ReportMetric(perJob, "heapB/job")
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := w.s.Snapshot().Write(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(snapshot))/jobs, "B/job")
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if _, err := Restore(bytes.NewReader(snapshot)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			w.s.Hash()
		}
	})
}
