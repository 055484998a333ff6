package plan

import (
	"fmt"
	"testing"
	"time"
)

// TestFlowsAreDrawn: jobs that wait in every way, for what a broker can know when they come; some are held by hand, and
// some cancelled in the middle.
func TestFlowsAreDrawn(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(4) {
		known := map[string]Job{}
		site := map[string]int{}
		for _, o := range New(seed, Size{Sites: 3, Length: 10 * time.Minute}).Orders {
			if o.CancelJob >= len(o.Jobs) || o.HoldFor > 0 && !o.Jobs[o.HoldJob].Gated() {
				t.Fatalf("%+v", o)
			}
			seen["cancelled in the middle"] = seen["cancelled in the middle"] || o.CancelJob > 0 && o.CancelAfter > 0
			seen["held by hand"] = seen["held by hand"] || o.HoldFor > 0
			for _, j := range o.Jobs {
				for _, w := range j.After {
					on, ok := known[w.Job]
					if !ok || site[w.Job] != o.Site || w.When == "each" && on.Count != j.Count {
						t.Fatalf("%s waits for %+v of site %d: %+v", o, w, site[w.Job], on)
					}
					seen[w.When] = true
					seen["gated, and waits"] = seen["gated, and waits"] || j.Parallel > 0 && w.When != "each"
				}
				seen["several"] = seen["several"] || len(j.After) > 2
				if j.Backoff > 0 {
					seen[fmt.Sprintf("tried again on %d, fails for good: %t", j.OnlyOn, j.First == 0)] = true
				}
				if j.Parallel > 0 {
					seen[fmt.Sprintf("parallel %d", j.Parallel)] = true
				}
				seen["one task fails"] = seen["one task fails"] || j.FailTask > 0
				known[j.Name], site[j.Name] = j, o.Site
			}
		}
	}
	delete(seen, "")
	if want := 2 + 4 + 1 + 1 + 6 + 3 + 1; len(seen) != want {
		t.Errorf("saw %d kinds, want %d: %v", len(seen), want, seen)
	}
	for what, is := range seen {
		if !is {
			t.Errorf("%s: not drawn", what)
		}
	}
}
