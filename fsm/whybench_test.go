package fsm

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// BenchmarkWhy asks about the last of a million waiting tasks, in arrays (one a site) and as jobs of one task each.
func BenchmarkWhy(b *testing.B) {
	const waiting = 1_000_000
	for _, sites := range []int{10, 100, 1000} {
		for _, jobs := range []int{1, waiting / sites} {
			b.Run(fmt.Sprintf("sites=%d/jobs-a-site=%d", sites, jobs), func(b *testing.B) {
				w, id := waitingWorld(b, sites, jobs, uint32(waiting/sites/jobs))
				b.ReportAllocs()
				for b.Loop() {
					if v, ok := w.s.Why(id); !ok || v.Waiting == 0 {
						b.Fatal("it waits")
					}
				}
			})
		}
	}
}

// waitingWorld has two busy cores a site, and returns the job submitted last.
func waitingWorld(b *testing.B, sites, jobs int, count uint32) (*world, command.JobID) {
	names := make([]string, sites)
	for i := range names {
		names[i] = fmt.Sprintf("s%05d", i)
	}
	w := newWorld(b, command.DefaultParams(), names...)
	for _, x := range names {
		for left := jobs; left > 0; left -= command.MaxJobsPerSubmit {
			batch := make([]command.JobSpec, 0, command.MaxJobsPerSubmit)
			for range min(left, command.MaxJobsPerSubmit) {
				batch = append(batch, w.job(x, count))
			}
			w.submit(x, batch...)
		}
	}
	for _, x := range names {
		w.must(x, w.offering(x, 1, 1))
	}
	last := names[sites-1]
	w.submit(last, w.job(last, 1))
	return w, command.JobID{Site: last, Num: w.num[last]}
}
