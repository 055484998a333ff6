package outputs

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// fill puts n small outputs, as many at a time as a keeper does.
func (s *shelf) fill(n int) {
	s.Helper()
	const each = 4096
	for from := 0; from < n; from += each {
		items := make([]Item, 0, each)
		for i := from; i < min(from+each, n); i++ {
			items = append(items, item(i, fmt.Sprintf("output of task %d\n", i), ""))
		}
		s.put(items...)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManySmallOnes: far more outputs than a handler once kept are all there after a
// restart, in few files and little memory.
func TestManySmallOnes(t *testing.T) {
	const many = 50_000
	cfg := configAt(t.TempDir())
	cfg.MaxBytes = many * minCharge
	s := openShelf(t, cfg)
	s.fill(many)
	s.reopen()
	for n := range many {
		if got, want := s.read(n, 0), fmt.Sprintf("output of task %d\n", n); got != want {
			t.Fatalf("task %d: %q", n, got)
		}
	}
	if files := s.files("."); len(files) > 3*fractions {
		t.Errorf("%d files", len(files))
	}
}

// BenchmarkMillion: a million small outputs, put and opened again.
func BenchmarkMillion(b *testing.B) {
	const many = 1_000_000
	for b.Loop() {
		cfg := configAt(b.TempDir())
		cfg.MaxBytes = 10 << 30
		before := heap()
		s := openShelf(b, cfg)
		begin := time.Now()
		s.fill(many)
		b.ReportMetric(float64(many)/time.Since(begin).Seconds(), "puts/s")
		begin = time.Now()
		s.reopen()
		b.ReportMetric(time.Since(begin).Seconds(), "s/open")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		b.ReportMetric(float64(len(s.files("."))), "files")
		begin = time.Now()
		const reads = 10_000
		for i := range reads {
			if n := i * (many / reads); s.read(n, 0) != fmt.Sprintf("output of task %d\n", n) {
				b.Fatalf("task %d is lost", n)
			}
		}
		b.ReportMetric(float64(time.Since(begin).Microseconds())/reads, "µs/read")
		_ = s.Close()
		if err := os.RemoveAll(cfg.Dir); err != nil {
			b.Fatal(err)
		}
	}
}
