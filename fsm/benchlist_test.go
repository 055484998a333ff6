package fsm

import (
	"bytes"
	"testing"
)

// BenchmarkList reads pages of 100 from 1e6 separate waiting jobs of 1000 sites. With a filter that matches
// nothing, up to maxScan jobs are examined: the worst page.
func BenchmarkList(b *testing.B) {
	c := newCrowd(b, 1000, 1_000_000, true)
	for _, k := range []struct {
		name   string
		filter JobFilter
		want   int
	}{
		{"newest", JobFilter{}, 100},
		{"state", JobFilter{State: "queued"}, 100},
		{"owner", JobFilter{Owner: "s00999"}, 100},
		{"rare-state", JobFilter{State: "running"}, 0},
		{"rare-label", JobFilter{Match: func(payload []byte) bool { return bytes.Contains(payload, []byte("label")) }}, 0},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, _ := c.s.Jobs(k.filter, 0, 100); len(got) != k.want {
					b.Fatalf("%d jobs, want %d", len(got), k.want)
				}
			}
		})
	}
}
