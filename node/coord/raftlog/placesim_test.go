package raftlog

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// world is a group of voters whose leaders decide as this package's do, by what they measure.
type world struct {
	t       *rapid.T
	truth   places
	timing  timing
	noise   int // of measurements, in percent
	now     time.Time
	leader  string
	led     []string // who led, but for turns
	slow    time.Time
	far     time.Time
	better  time.Time
	turn    time.Time
	handed  map[string]handoverCounts
	byTurns []string // who led by its turn
}

// newWorld draws voters anywhere: in a plane, or with ways that no plane has.
func newWorld(t *rapid.T, slowest int) *world {
	w := &world{
		t: t, timing: timingOf(WAN), noise: rapid.IntRange(0, 10).Draw(t, "noise"), now: time.Unix(1_700_000_000, 0),
		handed: map[string]handoverCounts{},
		truth:  places{voters: []string{"a", "b", "c", "d", "e"}, trips: trips{}, syncs: map[string]time.Duration{}},
	}
	w.truth.voters = w.truth.voters[:rapid.IntRange(2, 5).Draw(t, "voters")]
	n, us := len(w.truth.voters), time.Microsecond
	plane := rapid.Bool().Draw(t, "plane")
	at := rapid.SliceOfN(rapid.IntRange(0, 200_000), n, n).Draw(t, "at")
	for i, v := range w.truth.voters {
		w.truth.trips[v] = map[string]time.Duration{}
		w.truth.syncs[v] = time.Duration(rapid.IntRange(300, slowest).Draw(t, "sync")) * us
		w.handed[v] = newHandoverCounts()
		for j, other := range w.truth.voters[:i] {
			d := time.Duration(max(at[i]-at[j], at[j]-at[i], 200)) * us
			if !plane {
				d = time.Duration(rapid.IntRange(200, 300_000).Draw(t, "way")) * us
			}
			w.truth.trips[v][other], w.truth.trips[other][v] = d, d
		}
	}
	w.lead(rapid.SampledFrom(w.truth.voters).Draw(t, "leader"))
	return w
}

func (w *world) lead(site string) {
	w.leader, w.slow, w.far, w.better, w.turn = site, time.Time{}, time.Time{}, time.Time{}, w.now
}

// blur returns a duration as it is measured: some percent more or less, and a little more.
func (w *world) blur(d time.Duration) time.Duration {
	percent := rapid.IntRange(100-w.noise, 100+w.noise).Draw(w.t, "blur")
	return d*time.Duration(percent)/100 + time.Duration(rapid.IntRange(0, 100*w.noise).Draw(w.t, "late"))*time.Microsecond
}

// look is what the leader sees: its own leadership, with what it has measured.
func (w *world) look() (p *places, others []voterDisk, own time.Duration) {
	p = &places{self: w.leader, voters: w.truth.voters, trips: trips{}, syncs: map[string]time.Duration{}}
	for v, to := range w.truth.trips {
		p.trips[v] = map[string]time.Duration{}
		for _, other := range p.voters {
			if d, ok := to[other]; ok {
				p.trips[v][other] = w.blur(d)
			}
		}
	}
	own = w.blur(w.truth.syncs[w.leader])
	p.syncs[w.leader] = own
	for _, v := range p.voters {
		if v == w.leader {
			continue
		}
		took := w.blur(w.truth.trips[w.leader][v] + w.truth.syncs[v])
		trip, _ := p.trips.between(w.leader, v)
		p.syncs[v] = max(took-trip, 0)
		others = append(others, voterDisk{id: raft.ServerID(v), sync: took, known: true, ready: true})
	}
	return p, others, own
}

// step looks once, and reports whether the leadership was handed over, but for turns.
func (w *world) step() bool {
	w.now = w.now.Add(5 * time.Second)
	p, others, own := w.look()
	for i, v := range others {
		others[i].ready = p.hastens(string(v.id))
	}
	successor, slow := chooseFasterVoter(own, others)
	if calm(&w.slow, slow, w.now, w.timing.slow) && w.hand(reasonDisk, string(successor.id)) {
		return true
	}
	better := p.better()
	far := calm(&w.far, len(p.nearer()) > 0, w.now, w.timing.far)
	due := calm(&w.better, len(better) > 0, w.now, w.timing.slow)
	for _, v := range better {
		if far && due && w.hand(reasonFar, v) {
			return true
		}
	}
	if w.now.Sub(w.turn) >= w.timing.turn {
		w.takeTurns(p, others)
	}
	return false
}

func (w *world) takeTurns(p *places, others []voterDisk) {
	for _, v := range inTurn(others, w.leader) {
		if p.hasTurns(string(v.id)) && w.hand(reasonTurn, string(v.id)) {
			w.byTurns = append(w.byTurns, w.leader)
			return
		}
	}
}

func (w *world) hand(why reason, to string) bool {
	due := func(site string, why reason) bool { return w.handed[site][why].Due(w.now) }
	if !due(w.leader, why) || !due(to, reasonDisk) || why != reasonDisk && !due(to, reasonFar) {
		return false
	}
	w.handed[w.leader][why].Note(w.now)
	w.led = append(w.led, w.leader)
	w.lead(to)
	return true
}

// TestLeadershipComesToRest: wherever voters are, and however slow their disks, the leadership goes to no voter twice,
// and ends where no other one would be clearly better. Without turns, which are looked at by themselves.
func TestLeadershipComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 400_000)
		w.timing.turn = 1000 * time.Hour
		for range 720 { // an hour
			w.step()
		}
		if led := append(w.led, w.leader); len(slices.Compact(slices.Sorted(slices.Values(led)))) < len(led) {
			t.Fatalf("they led: %v\nways %v\ndisks %v", led, w.truth.trips, w.truth.syncs)
		}
		w.truth.self = w.leader
		own, _ := w.truth.majority(w.leader)
		for _, v := range w.truth.better() {
			if trip, _ := w.truth.majority(v); 3*trip < own && own-trip > 2*farLeast && w.clearly(v) {
				t.Fatalf("%s leads, whose majority is at %v; that of %s is at %v\nways %v\ndisks %v",
					w.leader, own, v, trip, w.truth.trips, w.truth.syncs)
			}
		}
	})
}

// clearly reports whether measurements cannot hide that a voter would be better, nor show it as slow.
func (w *world) clearly(v string) bool {
	now, _ := w.truth.commit(w.leader)
	then, _ := w.truth.commit(v)
	return 2*then < now && now-then > 4*farLeast && w.truth.syncs[v] < slowLeast/2
}

// TestTurnsDisturbNoPlace: among disks that are equally quick, turns go to voters that are near, and none is handed on
// before its end.
func TestTurnsDisturbNoPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 300)
		best := unmeasured
		for _, v := range w.truth.voters {
			d, _ := w.truth.majority(v)
			best = min(best, d)
		}
		for range 3 * 720 {
			if w.step() && len(w.byTurns) > 0 {
				t.Fatalf("%s handed over before its turn's end\nways %v", w.led[len(w.led)-1], w.truth.trips)
			}
		}
		for _, v := range w.byTurns {
			if d, _ := w.truth.majority(v); d > 2*best+farLeast {
				t.Fatalf("%s had its turn: its majority is at %v, the nearest at %v", v, d, best)
			}
		}
	})
}

// TestNobodyLiesItselfNearer: what one voter says of its round trips, whatever it is, brings nobody nearer to a
// majority than the other ends have measured.
func TestNobodyLiesItselfNearer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 400_000)
		said := places{voters: w.truth.voters, trips: trips{}}
		liar := rapid.SampledFrom(w.truth.voters).Draw(t, "liar")
		for v, to := range w.truth.trips {
			said.trips[v] = to
		}
		said.trips[liar] = map[string]time.Duration{}
		for _, v := range said.voters {
			if rapid.Bool().Draw(t, "says") {
				said.trips[liar][v] = time.Duration(rapid.IntRange(1, int(maxTrip)).Draw(t, "lie"))
			}
		}
		for _, v := range said.voters {
			truth, _ := w.truth.majority(v)
			if d, ok := said.majority(v); ok && d < truth {
				t.Fatalf("%s seems %v from a majority, and is %v", v, d, truth)
			}
		}
	})
}
