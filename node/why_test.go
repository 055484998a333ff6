package node

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/sched"
)

// TestWhyAtAnyBroker: a federation job is explained alike by both brokers, a home
// job by its owner's only.
func TestWhyAtAnyBroker(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	home := a.accept(t, `{"command":["sleep"]}`)
	bag := a.accept(t, `{"command":["sleep"],"count":5}`)
	a.await(t, func(s *fsm.State) bool { j, _ := s.Job(bag.ID); return j.Counts[fsm.Queued] == 4 })
	b.await(t, func(s *fsm.State) bool { j, _ := s.Job(bag.ID); return j.Counts[fsm.Queued] == 4 })
	for _, s := range sites {
		w, err := s.Why(t.Context(), bag.ID)
		if err != nil || w.Waiting != 4 || len(w.Sites) != 2 {
			t.Fatalf("%s: %+v %v", s.name, w, err)
		}
		for _, x := range w.Sites {
			if x.Why != fsm.HinderedFull || !strings.Contains(x.Text, "short of 1 core; the next room is this job's") {
				t.Errorf("%s of %s: %s", s.name, x.Site, x.Text)
			}
		}
		if !strings.Contains(w.Summary, "it is next") || w.Estimate.Unknown == "" {
			t.Errorf("%s: %q %+v", s.name, w.Summary, w.Estimate)
		}
	}
	if w, err := a.Why(t.Context(), home.ID); err != nil || w.View != nil || !strings.Contains(w.Summary, "none of its tasks waits") {
		t.Errorf("home: %+v %v", w, err)
	}
	var elsewhere *ElsewhereError
	if _, err := b.Why(t.Context(), home.ID); !errors.As(err, &elsewhere) || elsewhere.Site != "site-1" {
		t.Errorf("a home job of another site: %v", err)
	}
	for _, id := range []fsm.JobID{{Site: "site-1", Num: 999}, {Site: "nobody", Num: 1}} {
		if _, err := b.Why(t.Context(), id); id.Site == "nobody" && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := a.Why(t.Context(), fsm.JobID{Site: "site-1", Num: 999}); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestWhyWhileTheCoreHangs: what the state says of a job is told all the same.
func TestWhyWhileTheCoreHangs(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	bag := a.accept(t, `{"command":["sleep"],"count":5}`)
	b.await(t, func(s *fsm.State) bool { j, _ := s.Job(bag.ID); return j.Counts[fsm.Queued] > 0 })
	goOn := make(chan struct{})
	defer close(goOn)
	b.post(askEvent(func(*core) { <-goOn }))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if w, err := b.Why(ctx, bag.ID); err != nil || w.Waiting == 0 || ctx.Err() != nil {
		t.Errorf("%+v %v", w, err)
	}
}

// TestDryRunAcceptsNothing: it tells what a submission would, and leaves no trace.
func TestDryRunAcceptsNothing(t *testing.T) {
	sites := startSites(t, 2, 1)
	a := sites[0]
	ask := func(json string, strict bool) (Why, error) {
		spec, err := ParseSpec([]byte(json))
		if err != nil {
			t.Fatal(err)
		}
		return a.DryRun(context.Background(), Request{Spec: spec, Strict: strict})
	}
	if w, err := ask(`{"command":["x"]}`, false); err != nil || w.State != "running" || w.Job.Num != 0 {
		t.Fatalf("at home: %+v %v", w, err)
	}
	w, err := ask(`{"command":["x"],"count":9}`, false)
	if err != nil || w.Waiting != 9 || !strings.Contains(w.Summary, "3 tasks of 9 would start at once") || w.Estimate.Unknown != "" {
		t.Fatalf("too many for home: %+v %v", w, err)
	}
	w, err = ask(`{"command":["x"],"resources":{"cpu":7}}`, false)
	if err != nil || w.Sites[0].Why != fsm.HinderedShape || w.Estimate.Unknown == "" {
		t.Fatalf("too wide: %+v %v", w, err)
	}
	if _, err = ask(`{"command":["x"],"resources":{"cpu":7}}`, true); !errors.Is(err, ErrUnfit) {
		t.Fatalf("strict: %v", err)
	}
	if first := a.accept(t, `{"command":["x"]}`); first.ID.Num != 1 {
		t.Fatalf("the questions used numbers: %v", first.ID)
	}
	if j, err := a.Jobs(t.Context(), JobQuery{Limit: 10}); err != nil || len(j.Items) != 1 {
		t.Fatalf("%d jobs %v", len(j.Items), err)
	}
}

// TestHomeWhy: jobs that only their own broker knows.
func TestHomeWhy(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	a.lease(-time.Hour)
	r.now = r.now.Add(time.Hour)
	a.turn(tickEvent{})
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	w, ok := a.core.homeWhy(3)
	if !ok || w.Waiting != 1 || !strings.Contains(w.Summary, "behind 1 task") || w.Estimate.Unknown == "" {
		t.Fatalf("%+v", w)
	}
	if _, ok = a.core.homeWhy(99); ok {
		t.Fatal("no such job")
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
		v := fsm.WhyView{Params: fsm.DefaultParams(), Job: fsm.JobID{Site: "a", Num: 1}}
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
	v := fsm.WhyView{Params: fsm.DefaultParams(), Job: fsm.JobID{Site: "a"}, Turns: []fsm.TurnView{{Site: "b", Tied: true}, {Site: "a"}}}
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
	v := fsm.WhyView{Params: fsm.DefaultParams(), Job: fsm.JobID{Site: "a"}, Turns: []fsm.TurnView{{Site: "a", Priority: "3600000000000"}, {Site: "b", Priority: "0"}}}
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
	v := fsm.WhyView{Params: fsm.DefaultParams(), Job: fsm.JobID{Site: "a", Num: 1}, Turns: []fsm.TurnView{b, a}}
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
		"your site has no core, and alone your jobs would wait for ever")
	v.Turns[0].Excess = new(big.Int).Lsh(big.NewInt(1), 65).String() // whom it lends to has no core at all
	check(sched.Shapley, "b goes first: without its site's cores other sites' jobs would wait for ever; "+
		"your site has no core, and alone your jobs would wait for ever")
	v.Params.Policy, v.Policy = sched.Shapley, sched.CE
	if got := turnText(&v); !strings.HasSuffix(got, " (by CE: there are too many sites for SHAPLEY)") {
		t.Error(got)
	}
}

// TestPolicyByWaits: once the lead has raised the version, a running federation goes
// by projected waits, and every broker words whose turn it is.
func TestPolicyByWaits(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	a.await(t, func(s *fsm.State) bool { return s.CanUse(sched.Alone) == nil })
	p := a.Params()
	p.Policy = sched.Alone
	if err := a.SetParams(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	a.accept(t, `{"command":["sleep"]}`)
	bag := a.accept(t, `{"command":["sleep"],"count":5,"timeout":"60s"}`)
	for _, s := range []*testSite{a, b} {
		s.await(t, func(s *fsm.State) bool {
			j, _ := s.Job(bag.ID)
			return s.Policy() == sched.Alone && j.Counts[fsm.Queued] == 4
		})
	}
	other := b.accept(t, `{"command":["sleep"],"timeout":"60s"}`)
	a.await(t, func(s *fsm.State) bool { _, ok := s.Job(other.ID); return ok })
	w, err := a.Why(t.Context(), bag.ID)
	if err != nil || !strings.Contains(w.Turn, " longer than they would alone") && !strings.Contains(w.Turn, " less than they would alone") {
		t.Errorf("%q %v", w.Turn, err)
	}
}

// TestAmountByRates: core-hours only where cores alone are charged for.
func TestAmountByRates(t *testing.T) {
	p := fsm.DefaultParams()
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
