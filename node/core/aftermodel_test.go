package core

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// chains is jobs of one site that wait for each other, at random, with a broker that is killed at any point.
type chains struct {
	*rig
	a    *rigSite
	jobs []*link
}

// link is a job that was accepted, as its user knows it.
type link struct {
	id    command.JobID
	after []jobspec.Dependency
	// asked: the user asked for its end; lacking: its inputs were said not to come. starts counts the attempts that
	// began.
	asked, lacking bool
	starts         int
}

// TestNothingStartsTooEarlyOrWaitsForever: whatever is submitted, ends and is cancelled, and whenever the broker is
// killed, before the sync of a turn or behind it: nothing starts before what it waits for has ended as asked, nothing
// starts twice, and in the end everything has ended as a simple model says.
func TestNothingStartsTooEarlyOrWaitsForever(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		r := foundChains(t, base, 2, 2)
		c := &chains{rig: r, a: r.sites[0]}
		for range rapid.IntRange(5, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0, 1, 2, 3:
				c.submit(t)
			case 4, 5:
				c.end(t)
			case 6:
				c.cancel(t)
			case 7:
				c.die(t)
			case 8:
				r.settle()
			case 9:
				c.a.ticks(1)
			case 10, 11:
				c.bring(t)
			}
			c.check()
		}
		c.drain()
		c.checkEnds()
	})
}

// foundChains is sites of so many cores, with journals below a folder.
func foundChains(t *rapid.T, base string, cores ...int64) *rig {
	open := func() (*record.Journal, error) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			return nil, err
		}
		return unsynced(dir)
	}
	return foundRig(t, open, command.DefaultParams(), cores...)
}

func (c *chains) submit(t *rapid.T) {
	l := &link{}
	list := []string{}
	for range min(rapid.IntRange(0, 3).Draw(t, "after"), len(c.jobs)) {
		on := rapid.SampledFrom(c.jobs).Draw(t, "on")
		if slices.ContainsFunc(l.after, func(d jobspec.Dependency) bool { return d.Job == on.id }) {
			continue
		}
		whens := []jobspec.When{jobspec.WhenOK, jobspec.WhenOK, jobspec.WhenAny, jobspec.WhenNotOK}
		d := jobspec.Dependency{Job: on.id, When: rapid.SampledFrom(whens).Draw(t, "when")}
		l.after = append(l.after, d)
		list = append(list, fmt.Sprintf("%s:%s", d.Job, d.When))
	}
	spec := sleepJob
	if len(list) > 0 {
		spec = afterJob(list...)
	}
	if rapid.Bool().Draw(t, "elsewhere") {
		spec = spec[:len(spec)-1] + `,"sites":{"only":["b"]}}`
	}
	user := rapid.SampledFrom([]string{"", "alice"}).Draw(t, "user")
	parsed, err := jobspec.ParseSpec([]byte(spec))
	if err != nil {
		c.t.Fatal(err)
	}
	importing := rapid.IntRange(0, 3).Draw(t, "importing") == 0
	req := node.Request{Spec: parsed, User: user, Operator: true, Importing: importing}
	c.turn(t, SubmitEvent{Reqs: []node.Request{req}, Reply: func(_ int, a node.Answer) {
		if a.Err != nil {
			c.t.Fatalf("%s: %v", spec, a.Err)
		}
		l.id = a.ID
		c.jobs = append(c.jobs, l)
	}})
}

// turn is one of the site's broker, which may be killed before its sync, or behind it before anything else is done.
func (c *chains) turn(t *rapid.T, ev Event) {
	switch rapid.IntRange(0, 11).Draw(t, "killed") {
	case 0:
		c.killIn(ev, false)
	case 1:
		c.killIn(ev, true)
	default:
		c.a.turn(ev)
	}
}

// killIn has the broker die in a turn; what it wrote is kept if it was synced. Nobody is answered.
func (c *chains) killIn(ev Event, synced bool) {
	fx := &Effects{}
	c.a.core.now = c.clock()
	c.a.core.Step(ev, c.state, fx)
	c.a.core.Settle(c.state, fx)
	if synced {
		fx.Writes = slices.DeleteFunc(fx.Writes, func(w record.Write) bool { return w.Lazy })
		if err := c.a.journal.Commit(fx.Writes); err != nil {
			c.t.Fatal(err)
		}
	}
	c.a.boot()
}

func (c *chains) die(t *rapid.T) { c.killIn(TickEvent{}, rapid.Bool().Draw(t, "synced")) }

// end has one attempt end that runs at any site; the broker of a may be killed before it hears of it.
func (c *chains) end(t *rapid.T) {
	s := rapid.SampledFrom(c.sites).Draw(t, "at")
	ids := s.live()
	if len(ids) == 0 {
		return
	}
	id, exit := rapid.SampledFrom(ids).Draw(t, "attempt"), rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "exit")
	if s != c.a {
		s.finish(id, exit)
		return
	}
	delete(s.running, id)
	res := executor.Result{ExitCode: exit, Started: c.now.Add(-time.Second), Run: time.Second}
	s.ended[id] = res
	c.turn(t, EndedEvent{id, res})
}

func (c *chains) cancel(t *rapid.T) {
	if len(c.jobs) == 0 {
		return
	}
	l := rapid.SampledFrom(c.jobs).Draw(t, "job")
	l.asked = true
	c.turn(t, CancelEvent{Num: l.id.Num, Reply: func(error) {}})
	c.obey()
}

// bring says of a job that waits for its inputs that they are here, or will not be.
func (c *chains) bring(t *rapid.T) {
	if nums := c.a.core.AwaitInputs(); len(nums) > 0 {
		num := rapid.SampledFrom(nums).Draw(t, "brought")
		c.turn(t, c.broughtEvent(num, rapid.IntRange(0, 3).Draw(t, "lacking") == 0))
	}
}

// broughtEvent is that of a job that awaits its inputs.
func (c *chains) broughtEvent(num uint64, lacking bool) BroughtEvent {
	at := slices.IndexFunc(c.jobs, func(l *link) bool { return l.id.Num == num })
	ev := BroughtEvent{Num: num, Reply: func(error) {}}
	if at < 0 { // nobody was told that it was accepted
		ev.Why = "nobody knows it"
		return ev
	}
	l := c.jobs[at]
	if lacking {
		l.lacking, ev.Why = true, "they are not to be had"
		return ev
	}
	spec, err := jobspec.SpecOf(c.a.core.after.Find(num).Spec, c.a.core.sealer)
	if err != nil {
		c.t.Fatal(err)
	}
	ev.Spec = spec
	return ev
}

// obey has handlers end what they were told to stop.
func (c *chains) obey() {
	for _, s := range c.sites {
		stops := s.stops
		s.stops = nil
		for _, id := range stops {
			if _, runs := s.running[id]; runs {
				delete(s.running, id)
				res := executor.Result{Cause: executor.Stopped, Started: c.now.Add(-time.Second), Run: time.Second}
				s.ended[id] = res
				s.turn(EndedEvent{id, res})
			}
		}
	}
}

// check looks at what has begun since the last time.
func (c *chains) check() {
	for _, l := range c.jobs {
		starts := 0
		for _, s := range c.sites {
			for _, id := range s.history {
				if id.Job == l.id.String() {
					starts++
				}
			}
		}
		if starts > 1 {
			c.t.Fatalf("job %s was started %d times", l.id, starts)
		}
		if starts > l.starts {
			c.checkStart(l)
		}
		l.starts = starts
	}
}

func (c *chains) checkStart(l *link) {
	if slices.Contains(c.a.core.AwaitInputs(), l.id.Num) {
		c.t.Fatalf("job %s has begun without its inputs", l.id)
	}
	for _, d := range l.after {
		if state, _ := c.a.sees(d.Job); !allowed(d.When, state) {
			c.t.Fatalf("job %s has begun, and waited for %s, %s: that is %s", l.id, d.Job, d.When, state)
		}
	}
}

// allowed is the model: what a job's end means to one that waits for it.
func allowed(when jobspec.When, state string) bool {
	switch state {
	case "succeeded":
		return when != jobspec.WhenNotOK
	case "failed", "cancelled", "lost":
		return when != jobspec.WhenOK
	}
	return false
}

// drain has everything end well that can begin.
func (c *chains) drain() {
	for quiet := 0; quiet < 3; quiet++ {
		c.settle()
		c.obey()
		for _, num := range c.a.core.AwaitInputs() {
			c.a.turn(c.broughtEvent(num, false))
			quiet = 0
		}
		for _, s := range c.sites {
			for _, id := range s.live() {
				if _, runs := s.running[id]; runs {
					s.finish(id, 0)
					quiet = 0
				}
			}
		}
		c.a.ticks(1)
		c.check()
	}
}

// checkEnds compares all ends with the model.
func (c *chains) checkEnds() {
	for _, l := range c.jobs {
		state, reason := c.a.sees(l.id)
		inVain := slices.ContainsFunc(l.after, func(d jobspec.Dependency) bool {
			on, _ := c.a.sees(d.Job)
			return !allowed(d.When, on)
		})
		switch {
		case state != "succeeded" && state != "failed" && state != "cancelled":
			c.t.Fatalf("job %s is %s in the end: %s", l.id, state, reason)
		case inVain && (state != "cancelled" || l.starts > 0):
			c.t.Fatalf("job %s waits in vain, and is %s after %d starts: %s", l.id, state, l.starts, reason)
		case !inVain && !l.asked && !l.lacking && (l.starts == 0 || state == "cancelled"):
			c.t.Fatalf("job %s is %s after %d starts: %s", l.id, state, l.starts, reason)
		}
	}
	if n := c.a.core.after.Held(); n > 0 {
		c.t.Fatalf("%d jobs are held in the end", n)
	}
}
