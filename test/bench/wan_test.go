package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
)

// inMs is a matrix of milliseconds.
func inMs(rows ...[]int) [][]time.Duration {
	var out [][]time.Duration
	for _, row := range rows {
		var line []time.Duration
		for _, v := range row {
			line = append(line, time.Duration(v)*time.Millisecond)
		}
		out = append(out, line)
	}
	return out
}

// TestLinksAreLaidAroundTheLeader: who leads stays, and gets the place that the layout gives the leader.
func TestLinksAreLaidAroundTheLeader(t *testing.T) {
	near, far := mixLayout(5, mixNear, 0), mixLayout(5, mixFar, 4)
	for _, c := range []struct {
		layout
		leader int
		want   []int
	}{
		{near, 0, []int{0, 1, 2, 3, 4}},
		{near, 3, []int{1, 2, 3, 0, 4}},
		{far, 0, []int{4, 0, 1, 2, 3}},
		{far, 4, []int{0, 1, 2, 3, 4}},
	} {
		if got := c.settle(5, c.leader); !slices.Equal(got, c.want) {
			t.Errorf("%s, site %d leads: places %v, want %v", c.name, c.leader, got, c.want)
		}
	}
	times := far.roundTrips(far.settle(5, 0))
	for pair, want := range map[[2]int]int{{1, 2}: 150, {1, 5}: 150, {2, 3}: 10, {2, 5}: 80, {3, 4}: 10} {
		if got := times.Between(pair[0], pair[1]); got != time.Duration(want)*time.Millisecond {
			t.Errorf("the first site leads at 150 ms: %v are %s apart, want %d ms", pair, got, want)
		}
	}
}

// TestLimitsAreRoundTripsOfAMajority: a commit takes the leader's round trip to the farthest of the nearest majority.
func TestLimitsAreRoundTripsOfAMajority(t *testing.T) {
	p := paths(inMs(
		[]int{0, 10, 10, 80, 150},
		[]int{10, 0, 10, 80, 150},
		[]int{10, 10, 0, 80, 150},
		[]int{80, 80, 80, 0, 150},
		[]int{150, 150, 150, 150, 0},
	))
	for what, c := range map[string]struct {
		got  time.Duration
		want int
	}{
		"commit of a near leader":            {p.commit(0), 10},
		"commit of a far leader":             {p.commit(4), 150},
		"commit of the one at 80 ms":         {p.commit(3), 80},
		"submission at a follower":           {p.submitted(1, 0), 20},
		"submission at the leader":           {p.submitted(0, 0), 10},
		"submission at the far site":         {p.submitted(4, 0), 160},
		"submission to a far leader":         {p.submitted(0, 4), 300},
		"start at a near site":               {p.started(1, 0, 2), 20},
		"start at the far site":              {p.started(1, 0, 4), 90},
		"start at the leader's own machines": {p.started(1, 0, 0), 15},
	} {
		if c.got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("%s: %s, want %d ms", what, c.got, c.want)
		}
	}
	if alone := paths(inMs([]int{0})); alone.commit(0) != 0 {
		t.Errorf("a lone site commits in %s", alone.commit(0))
	}
}

func TestGridShowsEachLayoutBesideItsLimit(t *testing.T) {
	var g farGrid
	g.set("follower", "0 ms", figure{measured: 3, unit: "ms"})
	g.set("follower", "100 ms", figure{measured: 250, limit: 200, aim: aim{maxRatio: 1.1}})
	g.set("killed", "100 ms", figure{measured: 3.5, aim: aim{atMost: 3.5}})
	s := g.sheet()
	want := [][]string{{"follower", "3", "250 (200) MISSED"}, {"killed", "", "3.50 met"}}
	if !slices.Equal(s.head, []string{"", "0 ms", "100 ms"}) || !slices.EqualFunc(s.rows, want, slices.Equal[[]string]) {
		t.Errorf("head %q, rows %q", s.head, s.rows)
	}
}

func TestTableAsJSON(t *testing.T) {
	tab := newTable("2 cores")
	tab.add(figure{name: "a", measured: 700, limit: 1000, unit: "jobs/s", aim: aim{minRatio: .8}, note: "n"})
	tab.add(figure{name: "b", measured: math.NaN()})
	tab.addSheet(sheet{title: "s", head: []string{"x"}, rows: [][]string{{"1"}}})
	var text strings.Builder
	if err := tab.writeJSON(&text); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine string
		Figures []struct {
			Name, Unit, Aim, Verdict, Note string
			Measured                       *float64
			Limit                          float64
		}
		Sheets []struct {
			Title string
			Rows  [][]string
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	a := got.Figures[0]
	if a.Name != "a" || *a.Measured != 700 || a.Limit != 1000 || a.Verdict != "MISSED" || a.Aim != "≥ 0.80 of limit" || a.Note != "n" {
		t.Errorf("a figure is %+v", a)
	}
	if got.Figures[1].Measured != nil || got.Machine != "2 cores" || got.Sheets[0].Rows[0][0] != "1" {
		t.Errorf("got %s", text.String())
	}
}

// TestNoisyLayoutKeepsItsAims: its name begins with the round trip at which aims count.
func TestNoisyLayoutKeepsItsAims(t *testing.T) {
	env := environment{}
	l := noisy(evenLayout(5, 100*time.Millisecond))
	if !strings.HasPrefix(l.name, aimed(env)) || l.rest != (netlab.Link{Loss: 0.01, Jitter: 30 * time.Millisecond}) {
		t.Errorf("it is %+v", l)
	}
	if other := evenLayout(5, 20*time.Millisecond); strings.HasPrefix(other.name, aimed(env)) {
		t.Errorf("aims count at %s", other.name)
	}
}
