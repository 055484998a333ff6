package explain

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/sched"
)

// Found by review: odds were promised though no start had been seen yet.
func TestOddsAreNamedOnceTheyAreKnown(t *testing.T) {
	e := node.Estimate{Unknown: "too few waits were seen"}
	if text := whenText(e); strings.Contains(text, "odds") || !strings.Contains(text, "is not known: too few") {
		t.Error(text)
	}
	e = node.Estimate{P50: time.Minute, P90: time.Hour, Waits: 40}
	if text := whenText(e); !strings.Contains(text, "mostly within 60 min, from the last 40 waits") {
		t.Error(text)
	}
}

// Found by review: a job that no site can run was told whose turn it is.
func TestNoTurnWhereNoSiteCanRunIt(t *testing.T) {
	v := fsm.WhyView{
		Params: command.DefaultParams(), Job: command.JobID{Site: "a", Num: 1}, Waiting: 1,
		Turns: []fsm.TurnView{{Site: "a", Priority: "0"}},
		Sites: []fsm.SiteWhy{{Site: "a", Why: fsm.HinderedShape}, {Site: "b", Why: fsm.HinderedRule}},
	}
	var w node.Why
	if Fill(&w, &v, &SiteReports{}, node.FreshnessOf(0, time.Second)); w.Turn != "" || !strings.Contains(w.Summary, "no site can run it") {
		t.Errorf("%q; %s", w.Turn, w.Summary)
	}
	v.Sites[1].Why = fsm.HinderedFull
	if Fill(&w, &v, &SiteReports{}, node.FreshnessOf(0, time.Second)); w.Turn == "" {
		t.Error("no turn, though a site can run it")
	}
}

// TestTurnText shows the ground of each policy in plain units.
func TestTurnText(t *testing.T) {
	const coreHour, coreHourHour = "3600000000", "12960000000000000" // milli-cores·ms, ·ms²
	for policy, want := range map[string]string{
		sched.SimplDirect: "b goes first: it lent 412 core-hours more than it used; you lent 3 core-hours more than you used",
		sched.OrigDirect: "b goes first: it lent 1 core-hours more than it used, each counted by its age in hours; " +
			"you used 2 core-hours more than you lent, each counted by its age in hours",
		sched.RelDirect: "b goes first: it lent 1 core-hours more than it used, each counted by how promptly it was served; " +
			"you used 2 core-hours more than you lent, each counted by how promptly it was served",
		sched.FairShare:  "b goes first: it used 0.5 core-hours for each core contributed; you contribute no machine now",
		sched.RoundRobin: "b goes first: none of its tasks was ever chosen; your last task was chosen 1 start ago",
	} {
		v := fsm.WhyView{Params: command.DefaultParams(), Job: command.JobID{Site: "a", Num: 1}}
		v.Params.Policy = policy
		b := fsm.TurnView{Site: "b", Priority: "1483200000000", Usage: coreHour, Share: 2000}
		a := fsm.TurnView{Site: "a", Priority: "10800000000", Chosen: true, StartsAgo: 1}
		if policy == sched.OrigDirect || policy == sched.RelDirect {
			b.Priority, a.Priority = coreHourHour, "-25920000000000000"
		}
		v.Turns = []fsm.TurnView{b, a}
		if got := turnText(&v); got != want {
			t.Errorf("%s\n got %s\nwant %s", policy, got, want)
		}
	}
	v := fsm.WhyView{
		Params: command.DefaultParams(), Job: command.JobID{Site: "a"},
		Turns: []fsm.TurnView{{Site: "b", Tied: true}, {Site: "a"}},
	}
	if got := turnText(&v); got != "b goes first: you stand equal, and its tasks wait longer" {
		t.Error(got)
	}
	v.Turns = []fsm.TurnView{{Site: "a", Priority: "0"}, {Site: "b", Priority: "-3600000"}}
	if got := turnText(&v); got != "a goes first: you lent as much as you used; next is b, it used 3.6 core-seconds more than it lent" {
		t.Error(got)
	}
}

// TestQuantity: what is small is told in smaller units of time, and nothing with an
// exponent.
func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		hours float64
		power int
		want  string
	}{
		{0, 1, "0 core-hours"},
		{1234.5, 1, "1234 core-hours"},
		{0.1, 1, "0.1 core-hours"},
		{0.05, 1, "3 core-minutes"},
		{0.001, 1, "3.6 core-seconds"},
		{1e-6, 1, "0.0036 core-seconds"},
		{1e-9, 1, "under 0.001 core-seconds"},
		{0.05, 2, "180 core-minutes"},
		{1e-6, 2, "13 core-seconds"},
	} {
		if got, _ := quantity(c.hours, "core-hours", c.power); got != c.want {
			t.Errorf("%v, power %d: %q, want %q", c.hours, c.power, got, c.want)
		}
	}
	v := fsm.WhyView{
		Params: command.DefaultParams(), Job: command.JobID{Site: "a"},
		Turns: []fsm.TurnView{{Site: "a", Priority: "3600000000000"}, {Site: "b", Priority: "0"}},
	}
	v.Params.Policy = sched.OrigDirect
	if got := turnText(&v); got != "a goes first: you lent 1 core-minutes more than you used, each counted by its age in minutes; next is b, "+
		"it lent as much as it used, each counted by its age in hours" {
		t.Error(got)
	}
}

// TestTurnTextByWaits shows the ground of the policies by projected waits.
func TestTurnTextByWaits(t *testing.T) {
	b := fsm.TurnView{Site: "b", Excess: "11520000"}
	a := fsm.TurnView{Site: "a", Excess: "-3600000"}
	v := fsm.WhyView{Params: command.DefaultParams(), Job: command.JobID{Site: "a", Num: 1}, Turns: []fsm.TurnView{b, a}}
	check := func(policy, want string) {
		t.Helper()
		if v.Policy == "" {
			v.Params.Policy = policy
		}
		v.Policy = policy
		if got := turnText(&v); got != want {
			t.Errorf("%s\n got %s\nwant %s", policy, got, want)
		}
		v.Policy = ""
	}
	check(sched.Alone, "b goes first: in the federation its jobs wait 3.2 core-hours longer than they would alone on the cores it lends; "+
		"in the federation your jobs wait 1 core-hours less than they would alone on the cores you lend")
	check(sched.Shapley, "b goes first: in the federation its jobs wait 3.2 core-hours longer than their fair share of all waiting; "+
		"in the federation your jobs wait 1 core-hours less than their fair share of all waiting")
	v.Turns[1].Excess, v.Turns[1].Endless = "0", false
	check(sched.CE, "b goes first: in the federation its jobs wait 3.2 core-hours longer than their fair share of all waiting; "+
		"in the federation your jobs wait as long as their fair share of all waiting")
	v.Turns[1].Endless = true
	check(sched.Alone, "b goes first: in the federation its jobs wait 3.2 core-hours longer than they would alone on the cores it lends; "+
		"your site has no core, and alone your jobs would wait forever")
	v.Turns[0].Excess = new(big.Int).Lsh(big.NewInt(1), 65).String() // whom it lends to has no core at all
	check(sched.Shapley, "b goes first: without its site's cores other sites' jobs would wait forever; "+
		"your site has no core, and alone your jobs would wait forever")
	v.Params.Policy, v.Policy = sched.Shapley, sched.CE
	if got := turnText(&v); !strings.HasSuffix(got, " (by CE: there are too many sites for SHAPLEY)") {
		t.Error(got)
	}
}

// TestAmountByRates: core-hours only where cores alone are charged for.
func TestAmountByRates(t *testing.T) {
	p := command.DefaultParams()
	p.RateCPU, p.QuantumMs = 2, 1000
	if n, unit := amount(&p, "7200000", 1); n != 1 || unit != "core-hours" {
		t.Errorf("%v %s", n, unit)
	}
	p.RateGPU = 1
	if _, unit := amount(&p, "1", 1); unit != "core-hours' worth" {
		t.Error(unit)
	}
	p.RateCPU = 0
	if _, unit := amount(&p, "1", 1); unit != "charged units·hours" {
		t.Error(unit)
	}
	if n, unit := amount(&p, "x", 1); n != 0 || unit != "units" {
		t.Errorf("%v %s", n, unit)
	}
}

// TestRounded: one unit, never zero.
func TestRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1 s", 1500 * time.Millisecond: "2 s", 89 * time.Second: "89 s", 2 * time.Minute: "2 min", 89 * time.Minute: "89 min",
		90 * time.Minute: "2 h", 40 * time.Hour: "2 days",
	} {
		if got := rounded(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// TestEveryHindranceHasAText.
func TestEveryHindranceHasAText(t *testing.T) {
	seen := map[string]bool{}
	for h := fsm.HinderedFree; h <= fsm.HinderedLeft; h++ {
		text := siteText(&fsm.WhyView{}, &fsm.SiteWhy{Why: h})
		if seen[text] || text == h.String() || strings.ContainsRune(text, '\n') {
			t.Errorf("%s: %q", h, text)
		}
		seen[text] = true
	}
	if got := siteText(nil, &fsm.SiteWhy{Why: 99}); got != "unknown" {
		t.Error(got)
	}
}
