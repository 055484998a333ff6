package plausible

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// hours plays so many.
func (p *play) hours(n float64) *play {
	for range int(n * 3600) {
		p.step()
	}
	return p
}

// notes returns what stands out of a site, in one line.
func (p *play) notes(site string) string { return strings.Join(p.site(site).Notes, "; ") }

// TestHonestSitesShowNothing: over random jobs, with outages in which log time stands still and runs go on.
func TestHonestSitesShowNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := newPlay(t, seed, nil)
		for range rapid.IntRange(1, 4).Draw(rt, "parts") {
			p.hours(rapid.Float64Range(0.1, 1).Draw(rt, "hours"))
			for range rapid.IntRange(0, 120).Draw(rt, "seconds of outage") {
				p.lostMs += 1000
				p.watch.Sample(p.state, p.clock())
			}
		}
		for _, s := range fresh(p.watch).Sites {
			if len(s.Notes) > 0 {
				rt.Fatalf("seed %d: of honest %s it is said: %q\n%s", seed, s.Site, s.Notes, p.lines())
			}
		}
	})
}

// TestOneThatTakesTwiceAsLongIsShown, whether its machines are slow or it says so: with the log's time kept to, that
// cannot be told apart. The honest sites beside it stay unnamed.
func TestOneThatTakesTwiceAsLongIsShown(t *testing.T) {
	p := newPlay(t, 11, map[string]conduct{"c": {slow: 2}}).hours(3)
	s := p.site("c").Slowness
	if !strings.Contains(p.notes("c"), "times as long as tasks of the same jobs elsewhere") || math.Abs(s.Factor-2) > 0.25 {
		t.Errorf("of one that doubles durations it is said: %q\n%s", p.notes("c"), p.lines())
	}
	if s.Owners != 2 || s.AtLeast >= s.Factor || s.AtLeast < slowBound {
		t.Errorf("it is compared by %+v", s)
	}
	for _, x := range []string{"a", "b"} {
		if p.notes(x) != "" {
			t.Errorf("of honest %s it is said: %q", x, p.notes(x))
		}
	}
}

// TestRunsThatTheLogHasNoTimeForAreShown: reported at their end, and as begun before they were said to.
func TestRunsThatTheLogHasNoTimeForAreShown(t *testing.T) {
	for name, does := range map[string]conduct{"claims three times the time": {claim: 3}, "begins late": {late: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, 12, map[string]conduct{"c": does}).hours(2)
			s := p.site("c")
			if !strings.Contains(p.notes("c"), "than the log has time for") || s.Excess <= 0 {
				t.Errorf("it is said: %q\n%s", p.notes("c"), p.lines())
			}
			if p.notes("a") != "" || p.site("a").Beyond != 0 {
				t.Errorf("of honest a it is said: %q\n%s", p.notes("a"), p.lines())
			}
		})
	}
}

// TestOneThatDeclinesAllIsShown: it offers, hands back all, and lies idle while what it could run waits.
func TestOneThatDeclinesAllIsShown(t *testing.T) {
	p := newPlay(t, 13, map[string]conduct{"c": {decline: true}}).hours(4)
	if n := p.notes("c"); !strings.Contains(n, "it ran none of the") || !strings.Contains(n, "lay idle while other sites' tasks waited") {
		t.Errorf("it is said: %q\n%s", n, p.lines())
	}
	if s := p.site("c"); s.Runs != 0 || s.Ran != 0 || s.Lent < 15 || s.Lent > 16.1 || s.Idle > s.Lent {
		t.Errorf("of 4 cores for 4 hours it shows %+v", s)
	}
	if p.notes("a")+p.notes("b") != "" {
		t.Errorf("of honest sites it is said: %q, %q", p.notes("a"), p.notes("b"))
	}
}

// TestFewTasksSayNothing: a factor needs tasks, and before the first sample nothing is learnt.
func TestFewTasksSayNothing(t *testing.T) {
	w := New()
	w.Observe(ended("a", "b", 1, 9000, 0))
	if v := fresh(w); !v.Since.IsZero() || len(v.Sites) > 0 {
		t.Errorf("before the first sample it shows %+v", v)
	}
	w = begunAt(t, time.Unix(1, 0))
	for task := range uint32(enoughTasks - 1) {
		w.Observe(ended("a", "b", task+1, 20_000, 0))
		w.Observe(ended("a", "a", task+100, 10_000, 0))
	}
	if s := fresh(w).Sites[0]; s.Site != "b" || s.Slowness.Tasks != enoughTasks-1 || s.Slowness.Factor != 0 {
		t.Errorf("of %d tasks it shows %+v", enoughTasks-1, s)
	}
	w.Observe(ended("a", "b", 50, 20_000, 0))
	w.Observe(ended("a", "a", 150, 10_000, 0))
	if s := fresh(w).Sites[0]; math.Abs(s.Slowness.Factor-2) > 1e-6 || len(s.Notes) > 0 {
		t.Errorf("of %d tasks of one job it shows %+v", enoughTasks, s)
	}
}

// TestASitesOwnJobsDoNotClearIt: it decides what they do, so they say nothing of it.
func TestASitesOwnJobsDoNotClearIt(t *testing.T) {
	w := begunAt(t, time.Unix(1, 0))
	for task := range uint32(100) {
		w.Observe(ended("b", "b", task+1, 5000, 0))
		w.Observe(ended("b", "a", task+200, 10_000, 0))
	}
	for _, s := range fresh(w).Sites {
		if s.Site == "b" && s.Slowness.Tasks > 0 {
			t.Errorf("its own tasks count: %+v", s)
		}
	}
}

// TestOutagesExcuse: time that the log did not count is not held against a run, with or without stalls before.
func TestOutagesExcuse(t *testing.T) {
	now := time.Unix(1000, 0)
	s := founded(t)
	w := New()
	w.Sample(s, now)
	slack := 2 * (s.Params().LeaseMs + s.Params().MarginMs)
	for i, c := range []struct {
		outage time.Duration
		beyond int64
		shown  float64
	}{{0, slack, 0}, {0, slack + 1, 1}, {time.Minute, slack + 60_000, 1}, {0, slack + 60_001, 2}} {
		now = now.Add(c.outage)
		w.Sample(s, now)
		w.Observe(ended("a", "b", uint32(i), 0, c.beyond))
		if got := fresh(w).Sites[0].Beyond; got != c.shown {
			t.Errorf("case %d: %g runs are shown, want %g", i, got, c.shown)
		}
	}
}

// TestOldCountsFade: after a half-life of log time they are half.
func TestOldCountsFade(t *testing.T) {
	w := begunAt(t, time.Unix(1, 0))
	w.Observe(ended("a", "b", 1, 1000, 0))
	w.Observe(ended("a", "a", 2, 1000, 0))
	w.close(command.JobID{Site: "a", Num: 1}, 0)
	w.nowMs += HalfLife.Milliseconds()
	if s := fresh(w).Sites[0]; math.Abs(s.Runs-0.5) > 1e-9 || math.Abs(s.Slowness.Tasks-0.5) > 1e-9 {
		t.Errorf("a run is %g, and %g in the comparison, after a half-life", s.Runs, s.Slowness.Tasks)
	}
}

// TestABrokerThatHadNotHeardExcusesNoLaterOutage twice: log time that comes after all was not lost, so the outage that
// follows counts whole.
func TestABrokerThatHadNotHeardExcusesNoLaterOutage(t *testing.T) {
	var c clock
	at := func(ms, realMs int64) { c.sample(ms, time.UnixMilli(1_000_000+realMs), 0) }
	at(0, 0)
	at(0, 60_000)      // it hears nothing for a minute
	at(60_000, 60_000) // and then all at once
	at(60_000, 90_000) // an outage of half a minute
	if got, want := c.allowed(60_000, 60_000), int64(leastSlackMs+30_000); got != want {
		t.Errorf("%d ms are allowed, want %d", got, want)
	}
	for i := range int64(2 * maxStalls) {
		at(60_001+i, 93_000+i*3000)
	}
	if len(c.stalls) > maxStalls {
		t.Errorf("%d outages are kept", len(c.stalls))
	}
}

// TestMemoryIsBounded: jobs without an end, starts without an end, and sites that go.
func TestMemoryIsBounded(t *testing.T) {
	w := begunAt(t, time.Unix(1, 0))
	for i := range uint32(2*maxBegun + 100) {
		ev := ended("a", "b", 1, 1000, 0)
		ev.Job.Num, ev.Kind = uint64(i), fsm.EventTaskStarted
		w.Observe(ev)
	}
	for i := range uint64(maxGroups + 500) {
		ev := ended("a", "b", 1, 1000, 0)
		ev.Job.Num, ev.Time = i, int64(i)
		w.Observe(ev)
	}
	if len(w.begun) > maxBegun || len(w.groups) > maxGroups {
		t.Errorf("%d starts and %d jobs are kept", len(w.begun), len(w.groups))
	}
	if _, kept := w.groups[command.JobID{Site: "a", Num: 0}]; kept {
		t.Error("the oldest job is kept, not the newest")
	}
	w.Observe(&fsm.Event{Kind: fsm.EventSiteForgotten, Site: "b"})
	for _, s := range fresh(w).Sites {
		if s.Site == "b" {
			t.Errorf("a forgotten site is shown: %+v", s)
		}
	}
}

// ended is the end of an attempt that was assigned at 0 and ended then, by log time.
func ended(owner, site string, task uint32, runMs, beyondMs int64) *fsm.Event {
	return &fsm.Event{
		Kind: fsm.EventTaskEnded, End: fsm.EndSucceeded, Job: command.JobID{Site: owner, Num: 1}, Task: task, Count: 1,
		Attempt: 1, Token: 1, Site: site, Need: command.Resources{MilliCPU: 1000}, RunMs: runMs, BeyondMs: beyondMs,
	}
}

func founded(t *testing.T) *fsm.State {
	s := fsm.New()
	genesis := command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{1}, Params: command.DefaultParams(),
	}}
	if _, err := s.Apply(&command.Batch{Term: 1, Commands: []command.Command{genesis}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func begunAt(t *testing.T, now time.Time) *Watch {
	w := New()
	w.Sample(founded(t), now)
	return w
}

// fresh returns what a watch shows now, which is worked out at its next sample only.
func fresh(w *Watch) node.Plausibility {
	w.mu.Lock()
	w.viewed = false
	w.mu.Unlock()
	return w.View()
}

// TestViewIsOfASample: however often it is asked for, it is worked out once a sample.
func TestViewIsOfASample(t *testing.T) {
	s, now := founded(t), time.Unix(1, 0)
	w := New()
	w.Sample(s, now)
	before := len(w.View().Sites)
	w.Observe(ended("a", "b", 1, 9000, 0))
	if again := len(w.View().Sites); again != before {
		t.Errorf("%d sites, and %d of the same sample", before, again)
	}
	w.Sample(s, now.Add(time.Second))
	if after := len(w.View().Sites); after != before+1 {
		t.Errorf("%d sites, and %d after the next sample", before, after)
	}
}

// TestExcessOfALiar: a site may report whatever it likes.
func TestExcessOfALiar(t *testing.T) {
	w := begunAt(t, time.Unix(1, 0))
	for task := range uint32(40) {
		w.Observe(ended("a", "b", task+1, 1000, command.MaxTimeoutMs*2))
	}
	if s := fresh(w).Sites[0]; s.Beyond < 39 || s.Excess <= 0 {
		t.Errorf("it shows %+v", s)
	}
}

// TestADeliveredRunCountsOnce: when the attempt ends, and not again when its outputs have come or are given up.
func TestADeliveredRunCountsOnce(t *testing.T) {
	w := New()
	w.since = time.Unix(1, 0)
	ev := fsm.Event{
		Kind: fsm.EventTaskDelivering, End: fsm.EndSucceeded, Job: command.JobID{Site: "a", Num: 1}, Attempt: 1, Site: "b",
		RunMs: 3_600_000, Need: command.Resources{MilliCPU: 1000},
	}
	w.Observe(&ev)
	for _, kind := range []fsm.EventKind{fsm.EventTaskRequeued, fsm.EventTaskEnded} {
		ev.Kind, ev.Delivered = kind, true
		w.Observe(&ev)
	}
	if s := w.sites["b"]; s == nil || s.runs != 1 || s.ranHours != 1 {
		t.Errorf("counted: %+v", s)
	}
}
