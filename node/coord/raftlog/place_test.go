package raftlog

import (
	"slices"
	"testing"
	"time"
)

const testUnit = time.Millisecond

// mixed are places as in many federations: d is at 80 ms, e at 150 ms, all others within 10 ms.
func mixed(self string) *places {
	p := &places{self: self, voters: []string{"a", "b", "c", "d", "e"}, trips: trips{}, syncs: map[string]time.Duration{}}
	for i, v := range p.voters {
		p.trips[v], p.syncs[v] = map[string]time.Duration{}, testUnit
		for j, other := range p.voters {
			if far := max(i, j); i != j {
				p.trips[v][other] = []time.Duration{0, 10 * testUnit, 10 * testUnit, 80 * testUnit, 150 * testUnit}[far]
			}
		}
	}
	return p
}

func TestMajorityIsTheNearestOne(t *testing.T) {
	p := mixed("e")
	for site, want := range map[string]time.Duration{
		"a": 10 * testUnit, "c": 10 * testUnit, "d": 80 * testUnit, "e": 150 * testUnit,
	} {
		if d, ok := p.majority(site); !ok || d != want {
			t.Errorf("%s: %v, %v, want %v", site, d, ok, want)
		}
	}
}

func TestBetterPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		self   string
		change func(*places)
		want   []string
	}{
		"a far leader":               {"e", func(*places) {}, []string{"a", "b", "c"}},
		"a leader in between":        {"d", func(*places) {}, []string{"a", "b", "c"}},
		"a near leader":              {"b", func(*places) {}, nil},
		"one is not there":           {"e", func(p *places) { p.absent = map[string]bool{"a": true} }, []string{"b", "c"}},
		"a disk is not known":        {"e", func(p *places) { delete(p.syncs, "b") }, []string{"a", "c"}},
		"its own disk is not known":  {"e", func(p *places) { delete(p.syncs, "e") }, nil},
		"a slow disk":                {"e", func(p *places) { p.syncs["a"] = 200 * testUnit }, []string{"b", "c"}},
		"all near ones are slow":     {"e", func(p *places) { p.syncs["a"], p.syncs["b"], p.syncs["c"] = time.Second, time.Second, time.Second }, nil},
		"the quickest is first":      {"e", func(p *places) { p.syncs["a"], p.syncs["b"] = 3*testUnit, 2*testUnit }, []string{"c", "a", "b"}},
		"one says that it is near":   {"d", func(p *places) { p.trips["e"] = map[string]time.Duration{"a": 1, "b": 1, "c": 1, "d": 1} }, []string{"a", "b", "c"}},
		"one says nothing":           {"e", func(p *places) { delete(p.trips, "b") }, nil}, // b may be anywhere: a and c have no near majority
		"nothing is measured":        {"e", func(p *places) { p.trips = trips{} }, nil},
		"less than half, but little": {"e", func(p *places) { scale(p, 20) }, nil},
	} {
		p := mixed(c.self)
		c.change(p)
		if got := p.better(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// scale makes all ways shorter.
func scale(p *places, by time.Duration) {
	for _, to := range p.trips {
		for other := range to {
			to[other] /= by
		}
	}
}

func TestTurnsAreOfThoseThatAreNear(t *testing.T) {
	turns := func(p *places) (out []string) {
		for _, v := range p.voters {
			if p.hasTurns(v) {
				out = append(out, v)
			}
		}
		return out
	}
	p := mixed("a")
	if got := turns(p); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("mixed: %v", got)
	}
	scale(p, 40)
	if got := turns(p); len(got) != 5 {
		t.Errorf("all within 4 ms: %v", got)
	}
	p.trips = trips{}
	if got := turns(p); len(got) != 5 {
		t.Errorf("nothing is known: %v", got)
	}
}

func TestDiskGainsAreNotLostOnTheWay(t *testing.T) {
	p := mixed("a")
	if p.syncs["a"] = 500 * testUnit; !p.hastens("b") || !p.hastens("e") {
		t.Error("a slow leader is kept")
	}
	if p.syncs["a"] = 170 * testUnit; !p.hastens("b") || p.hastens("e") {
		t.Error("170 ms of a disk are not lost on a way of 150 ms")
	}
	if delete(p.trips, "e"); !p.hastens("e") {
		t.Error("a voter that is not measured cannot take over from a slow disk")
	}
}

// TestWordsAreBounded: others' answers name what they like.
func TestWordsAreBounded(t *testing.T) {
	w, now := newTripWatch(time.Second), time.Unix(1_700_000_000, 0)
	w.watch([]string{"b", "c"})
	w.note("b", "a", now, 5*testUnit, map[string]int64{
		"a": 6000, "c": -1, "b": 0, "stranger": 1, "": 1, "d": maxTrip.Microseconds() + 1,
	})
	w.note("stranger", "a", now, testUnit, map[string]int64{"a": 1})
	table := w.table("a", now)
	if len(table) != 2 || len(table["b"]) != 1 || table["b"]["a"] != 6*testUnit || table["a"]["b"] != 5*testUnit {
		t.Errorf("table %v", table)
	}
	if d, ok := table.between("a", "b"); !ok || d != 6*testUnit {
		t.Errorf("a and b are %v apart, %v", d, ok)
	}
	if words := w.words(now); len(words) != 1 || words["b"] != 5000 {
		t.Errorf("words %v", words)
	}
	if late := w.table("a", now.Add(tripRounds*time.Second+1)); len(late["a"]) != 0 || len(late) != 1 {
		t.Errorf("what is long ago: %v", late)
	}
	if w.watch([]string{"c"}); len(w.table("a", now)["a"]) != 0 {
		t.Error("who votes no more is still there")
	}
}
