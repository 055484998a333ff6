package archive

import (
	"io"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// filled is an archive of n attempts.
func filled(b *testing.B, n int) *Archive {
	b.Helper()
	c := &clock{epoch}
	a, err := Open(Config{Dir: b.TempDir(), Site: "a", Federation: "f", Now: c.now})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = a.Close() })
	batch := make([]Attempt, 256)
	for done := 0; done < n; done += len(batch) {
		for i := range batch {
			batch[i] = ended(uint64(done+i+1), time.Duration(done+i)*time.Millisecond)
		}
		if err := a.Append(batch, node.EventID{Entry: uint64(done + 1)}); err != nil {
			b.Fatal(err)
		}
	}
	return a
}

// BenchmarkAppend is what archiving one attempt costs in batches of 256,
// unsynced, as the collector writes.
func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	a := filled(b, 0)
	batch := make([]Attempt, 256)
	for i := range batch {
		batch[i] = ended(uint64(i+1), time.Hour)
	}
	for i := 0; b.Loop(); i++ {
		if err := a.Append(batch, node.EventID{Entry: uint64(i + 1)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/attempt")
}

// BenchmarkRead is what a report, and an export, cost for each attempt.
func BenchmarkRead(b *testing.B) {
	const n = 100_096
	a := filled(b, n)
	for name, read := range map[string]func() error{
		"report": func() error { _, err := a.Report(b.Context(), Query{}, "site"); return err },
		"ndjson": func() error { return a.Export(b.Context(), Query{}, NDJSON, io.Discard) },
		"swf":    func() error { return a.Export(b.Context(), Query{}, SWF, io.Discard) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/attempt")
			b.ReportMetric(float64(a.Bytes())/n, "bytes/attempt")
		})
	}
}
