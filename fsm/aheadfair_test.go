package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// farPlay plays a federation whose one lender is far away: what it reports, and what it is assigned, travels for way
// ms.
type farPlay struct {
	w        *world
	now      int64
	way, run int64
	ahead    bool
	queue    []command.AttemptRef // at the lender, in the order of arrival
	arriving []farNews
	ends     []farNews // on their way to the log
	running  []farRun
	known    map[command.AttemptRef]int64 // when it arrived at the lender
	released map[string]int64
	waits    map[string][]int64 // from release to start, by owner
}

type farNews struct {
	atMs int64
	ref  command.AttemptRef
	end  command.Ended
}

type farRun struct {
	ref   command.AttemptRef
	began int64
}

const farCores = 4

// playFar has owner a wait with very many tasks, and owner b, who owes nothing, release a few each two seconds.
func playFar(t *testing.T, way, run int64, ahead bool) *farPlay {
	t.Helper()
	p := params()
	p.Policy = sched.SimplDirect
	f := &farPlay{
		w: newWorld(t, p, "a", "b", "x"), way: way, run: run, ahead: ahead,
		known: map[command.AttemptRef]int64{}, released: map[string]int64{}, waits: map[string][]int64{},
	}
	f.w.must("a", &command.Raise{Version: command.AheadVersion})
	if ahead {
		f.w.must("x", &command.Ahead{IdleMs: 2 * way})
	}
	f.w.must("x", f.w.offering("x", farCores))
	f.w.submit("a", f.w.job("a", 20_000))
	for f.now = 0; f.now < 30_000; f.now += 10 {
		f.step()
	}
	return f
}

// step plays 10 ms: what was reported arrives and is matched, what was assigned arrives and begins, what has run ends.
func (f *farPlay) step() {
	f.w.at(f.now)
	if f.now%2000 == 1000 {
		f.released["b"] = f.now
		f.w.submit("b", f.w.job("b", 4))
	}
	var done []command.Ended
	for len(f.ends) > 0 && f.ends[0].atMs <= f.now {
		done = append(done, f.ends[0].end)
		f.ends = f.ends[1:]
	}
	if len(done) > 0 {
		f.w.must("x", &command.Complete{Attempts: done})
	}
	for _, a := range f.w.s.Assignments("x") {
		if _, old := f.known[a.AttemptRef]; !old {
			f.known[a.AttemptRef] = f.now + f.way
			f.arriving = append(f.arriving, farNews{atMs: f.now + f.way, ref: a.AttemptRef})
		}
	}
	for len(f.arriving) > 0 && f.arriving[0].atMs <= f.now {
		f.queue = append(f.queue, f.arriving[0].ref)
		f.arriving = f.arriving[1:]
	}
	f.endRuns()
	f.beginRuns()
}

func (f *farPlay) endRuns() {
	var rest []farRun
	for _, r := range f.running {
		if f.now-r.began < f.run {
			rest = append(rest, r)
			continue
		}
		f.ends = append(f.ends, farNews{atMs: f.now + f.way, end: command.Ended{
			AttemptRef: r.ref, Ran: true, RunMs: f.run, DelayMs: r.began - f.known[r.ref] + f.way,
		}})
	}
	f.running = rest
}

func (f *farPlay) beginRuns() {
	for len(f.running) < farCores && len(f.queue) > 0 {
		ref := f.queue[0]
		f.queue = f.queue[1:]
		f.running = append(f.running, farRun{ref, f.now})
		f.waits[ref.Job.Site] = append(f.waits[ref.Job.Site], f.now-f.released[ref.Job.Site])
	}
}

func (f *farPlay) worst(owner string) (most int64) {
	for _, w := range f.waits[owner] {
		most = max(most, w)
	}
	return most
}

// TestAheadKeepsAnOwedTurn: an owner who is owed the next turn waits longer than without tasks ahead by at most what is
// ahead of it when it comes: two runs on each core. Cores idle less meanwhile.
func TestAheadKeepsAnOwedTurn(t *testing.T) {
	for _, c := range []struct{ way, run int64 }{{100, 10}, {100, 50}, {100, 200}, {100, 500}, {100, 2000}, {20, 10}} {
		without, with := playFar(t, c.way, c.run, false), playFar(t, c.way, c.run, true)
		started := func(f *farPlay) int { return len(f.waits["a"]) + len(f.waits["b"]) }
		t.Logf("way %d ms, run %4d ms: started %4d, with ahead %4d; b's longest wait %4d ms, with ahead %4d ms",
			c.way, c.run, started(without), started(with), without.worst("b"), with.worst("b"))
		if len(with.waits["b"]) < len(without.waits["b"]) || started(with) < started(without) {
			t.Errorf("way %d, run %d: fewer tasks start with tasks ahead", c.way, c.run)
		}
		if extra := with.worst("b") - without.worst("b"); extra > 2*c.run+20 {
			t.Errorf("way %d, run %d: b waits %d ms longer with tasks ahead", c.way, c.run, extra)
		}
		if c.run > 8*c.way && started(with) != started(without) {
			t.Errorf("way %d, run %d: long runs are treated otherwise", c.way, c.run)
		}
	}
}
