package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func text(p Plan) string {
	s := ""
	for _, o := range p.Orders {
		s += fmt.Sprintf("%8s %s\n", seconds(o.At), o)
	}
	for _, f := range p.Faults {
		s += fmt.Sprintf("%8s %s\n", seconds(f.At), f)
	}
	return s
}

// TestSameSeedSamePlan: whoever has the seed can run it again.
func TestSameSeedSamePlan(t *testing.T) {
	size := Size{Sites: 5, Length: 10 * time.Minute, Disks: true}
	first := text(New(7, size))
	if again := text(New(7, size)); again != first {
		t.Error("two plans from one seed")
	}
	if other := text(New(8, size)); other == first {
		t.Error("one plan from two seeds")
	}
	t.Log("\n" + text(New(7, Size{Sites: 3, Length: 30 * time.Second})))
}

// TestEverythingIsDrawn in ten minutes of a few seeds, and in order of time.
func TestEverythingIsDrawn(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(4) {
		for _, sites := range []int{3, 5} {
			p := New(seed, Size{Sites: sites, Length: 10 * time.Minute, Disks: true, Slow: true, Hostile: true})
			names := map[string]bool{}
			for _, o := range p.Orders {
				if o.Site < 1 || o.Site > sites || o.At > 10*time.Minute {
					t.Fatalf("out of range: %s", o)
				}
				seen[fmt.Sprintf("lines %v, again %v, cancel %v", len(o.Jobs) > 1, o.Again, o.CancelAfter > 0)] = true
				for _, j := range o.Jobs {
					if names[j.Name] {
						t.Fatalf("%s twice", j.Name)
					}
					names[j.Name] = true
					seen[j.OnLoss], seen[fmt.Sprintf("home %v, hostile %v", j.Home, j.Hostile)] = true, true
				}
			}
			for _, f := range p.Faults {
				seen[string(f.Kind)], seen[string(f.Role)] = true, true
			}
			if !slices.IsSortedFunc(p.Orders, func(a, b Order) int { return int(a.At - b.At) }) {
				t.Error("orders out of order")
			}
		}
	}
	if want := 8 + 3 + 3 + 18 + 5; len(seen) != want {
		t.Errorf("saw %d kinds, want %d: %v", len(seen), want, seen)
	}
}

// TestFaultsNeedTheirDisks: ones that can forget, ones that can be slow; and a site that turns hostile.
func TestFaultsNeedTheirDisks(t *testing.T) {
	for _, f := range New(1, Size{Sites: 3, Length: time.Hour}).Faults {
		if f.Kind == Power || f.Kind == SlowDisk || f.Kind == Hostile {
			t.Fatal(f)
		}
	}
}
