package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// BenchmarkSnapshot measures 1e6 separate waiting jobs of 1000 sites, with one payload for all and with separate
// ones of 64 bytes; heapB/job includes the payload.
func BenchmarkSnapshot(b *testing.B) {
	b.Run("shared", func(b *testing.B) { benchSnapshot(b, false) })
	b.Run("own", func(b *testing.B) { benchSnapshot(b, true) })
}

func benchSnapshot(b *testing.B, own bool) {
	const jobs, sites = 1_000_000, 1000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := newCrowd(b, sites, 0, true)
	for _, x := range w.s.sites {
		batch := make([]command.JobSpec, 0, jobs/sites)
		for range jobs / sites {
			j := w.job(x.name, 1)
			if own {
				j.Payload = fmt.Appendf(nil, "%64s", command.JobID{Site: x.name, Num: j.Num})
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
