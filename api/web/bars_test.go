package web

import "testing"

// Found by users: 1 failed task of 200 was not seen, and a bar did not fill.
func TestProgress(t *testing.T) {
	for _, counts := range []map[string]uint32{
		{"succeeded": 199, "failed": 1},
		{"succeeded": 999, "failed": 1},
		{"succeeded": 999_998, "failed": 1, "lost": 1},
		{"failed": 1},
		{"succeeded": 1, "failed": 1, "lost": 1, "cancelled": 1, "running": 1, "stopping": 1, "assigned": 1, "queued": 999_993, "withdrawn": 1},
		{"queued": 1, "running": 2},
		{"succeeded": 333, "running": 333, "queued": 334},
		{"queued": 4_000_000_000},
	} {
		b, x := progress(counts), 0
		for _, p := range b.Parts {
			if p.X != x || p.W < leastWidth {
				t.Errorf("%v: a part from %d, %d wide, after %d", counts, p.X, p.W, x)
			}
			x += p.W
		}
		if x != barWidth || len(b.Parts) != len(counts) {
			t.Errorf("%v: %d parts, together %d of %d", counts, len(b.Parts), x, barWidth)
		}
	}
	if b := progress(nil); len(b.Parts) != 0 {
		t.Errorf("nothing is drawn as %v", b.Parts)
	}
	if b := stack("some of a whole", 1000, amount{1, "fill-queued", ""}); b.Parts[0].W != leastWidth {
		t.Errorf("one of a thousand, and the rest is nothing: %v", b.Parts)
	}
}
