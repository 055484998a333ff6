package core

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/record"
)

// TestAnyOrderKeepsThePromises has users submit and cancel, tasks end, brokers
// crash and sites be lost, while every command is ordered by itself in any
// order, and every result and every end is heard at any later time. At each step
// no task runs twice; in the end nothing that was accepted is lost.
func TestAnyOrderKeepsThePromises(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDisorder(rt, base)
		actions := map[string]func(*rapid.T){
			"":       d.check,
			"submit": d.submit, "submit2": d.submit,
			"cancel": d.cancel,
			"order":  d.order, "order2": d.order, "order3": d.order,
			"hear": d.hear, "hear2": d.hear, "hear3": d.hear,
			"look":    d.look,
			"fetch":   d.fetch,
			"deliver": d.deliver,
			"end":     d.end, "end2": d.end,
			"obey":    d.obey,
			"tick":    d.tick,
			"renew":   d.renew,
			"pause":   d.pause,
			"reach":   d.reach,
			"lose":    d.lose,
			"restart": d.restart,
			"power":   d.power,
		}
		for range 3 {
			rt.Repeat(actions)
		}
		d.calm()
		d.checkPromises()
	})
}

// testLease is short beside what a test lets pass, and long beside a step.
const testLease = 6 * time.Second

// disorder is a rig whose log and handlers keep no order.
type disorder struct {
	*rig
	// mail is what happened at a site and its broker has not heard yet.
	mail map[*rigSite][]Event
	jobs []*promised
	// read is how much of each site's history check has seen, newest the last
	// start of each task, good the tasks of which an attempt ended well, bad the
	// jobs of which one did not.
	read   map[*rigSite]int
	newest map[taskName]executor.ID
	good   map[taskName]bool
	bad    map[string]bool
	// stopped are the jobs whose cancel was acknowledged.
	stopped map[string]*promised
}

type taskName struct {
	job  string
	task uint32
}

func nameOf(id executor.ID) taskName { return taskName{id.Job, id.Task} }

// promised is a request, and what may become of its job.
type promised struct {
	site      *rigSite
	answer    int
	count     uint32
	never     bool // a loss is its end
	cancelled bool
	// stopped: from this entry on the job's cancel is acknowledged.
	stopped uint64
	end     string
}

func newDisorder(t *rapid.T, base string) *disorder {
	open := func() (*record.Journal, error) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return unsynced(dir) // the rig's crashes keep what was written
	}
	params := command.DefaultParams()
	params.LeaseMs = testLease.Milliseconds()
	d := &disorder{
		rig:  foundRig(t, open, params, 1, 2, 3),
		mail: map[*rigSite][]Event{}, read: map[*rigSite]int{},
		newest: map[taskName]executor.ID{}, good: map[taskName]bool{}, bad: map[string]bool{},
		stopped: map[string]*promised{},
	}
	d.late = func(s *rigSite, ev Event) { d.mail[s] = append(d.mail[s], ev) }
	d.travel()
	for _, s := range d.sites {
		s.files.hold = true
	}
	d.pass(2 * time.Hour) // the rig's own leases are longer
	for _, s := range d.sites {
		d.renewAt(s)
	}
	return d
}

func (d *disorder) site(t *rapid.T) *rigSite {
	d.t = t
	return d.sites[rapid.IntRange(0, len(d.sites)-1).Draw(t, "site")]
}

// reach has a site's broker answer other sites' questions for keys, or not.
func (d *disorder) reach(t *rapid.T) {
	s := d.site(t)
	s.unheard = rapid.SampledFrom([]string{"", "no route to host"}).Draw(t, "unheard")
}

func (d *disorder) submit(t *rapid.T) {
	s := d.site(t)
	p := &promised{
		site: s, answer: len(s.answers), count: rapid.Uint32Range(1, 4).Draw(t, "count"),
		never: rapid.Bool().Draw(t, "never"),
	}
	onLoss := "fenced"
	if p.never {
		onLoss = "never"
	}
	user := rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(t, "user")
	files := rapid.SampledFrom([]string{"", "", "," + oneInput, `,"outputs":{"paths":["y"],"max":"1Mi"}`}).Draw(t, "files")
	s.submitBy(user, fmt.Sprintf(`{"command":["true","%d"]%s,"count":%d,"resources":{"cpu":%d},"retry":{"max_attempts":%d,"on_loss":%q}}`,
		len(d.jobs), files, p.count, rapid.IntRange(1, 2).Draw(t, "cpu"), rapid.IntRange(1, 3).Draw(t, "attempts"), onLoss), "")
	d.jobs = append(d.jobs, p)
}

// id is the job's, once its user knows it.
func (p *promised) id() (command.JobID, bool) {
	a := p.site.answers[p.answer]
	return a.ID, a.Err == nil
}

func (d *disorder) cancel(t *rapid.T) {
	d.t = t
	if len(d.jobs) == 0 {
		return
	}
	p := d.jobs[rapid.IntRange(0, len(d.jobs)-1).Draw(t, "job")]
	if id, ok := p.id(); ok {
		p.cancelled = true
		p.site.turn(CancelEvent{Num: id.Num, Reply: func(err error) {
			if err == nil {
				p.stopped, d.stopped[id.String()] = d.state.Index(), p
			}
		}})
	}
}

// order orders one command, of any site and whichever of it.
func (d *disorder) order(t *rapid.T) {
	s := d.site(t)
	if len(s.pending) > 0 {
		d.orderOne(s, rapid.IntRange(0, len(s.pending)-1).Draw(t, "command"))
	}
}

func (d *disorder) orderOne(s *rigSite, i int) {
	cmd := s.pending[i]
	s.pending = slices.Delete(s.pending, i, i+1)
	d.mail[s] = append(d.mail[s], ResultEvent{Cmds: []command.Command{cmd}, Results: d.apply(cmd)})
}

// hear has a broker hear of one thing that happened.
func (d *disorder) hear(t *rapid.T) {
	s := d.site(t)
	if n := len(d.mail[s]); n > 0 {
		d.hearOne(s, rapid.IntRange(0, n-1).Draw(t, "event"))
	}
}

func (d *disorder) hearOne(s *rigSite, i int) {
	ev := d.mail[s][i]
	d.mail[s] = slices.Delete(d.mail[s], i, i+1)
	s.turn(ev)
}

func (d *disorder) look(t *rapid.T) { d.site(t).turn(StateEvent{}) }

// live lists what runs at a site, in a fixed order.
func (s *rigSite) live() []executor.ID {
	ids := make([]executor.ID, 0, len(s.running))
	for id := range s.running {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b executor.ID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}

// over ends one running attempt; its broker hears of it later.
func (d *disorder) over(s *rigSite, id executor.ID, res executor.Result) {
	delete(s.running, id)
	res.Started, res.Run = d.now.Add(-time.Second), time.Second
	s.ended[id] = res
	d.mail[s] = append(d.mail[s], EndedEvent{id, res})
}

// end has one task end by itself.
func (d *disorder) end(t *rapid.T) {
	s := d.site(t)
	if ids := s.live(); len(ids) > 0 {
		d.exit(s, rapid.SampledFrom(ids).Draw(t, "attempt"), rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "exit"))
	}
}

func (d *disorder) exit(s *rigSite, id executor.ID, code int) {
	if code == 0 {
		d.good[nameOf(id)] = true
	}
	if code != 0 {
		d.bad[id.Job] = true
	}
	d.over(s, id, executor.Result{ExitCode: code})
}

// obey ends what the broker told its handler to stop.
func (d *disorder) obey(t *rapid.T) { d.obeyAt(d.site(t)) }

func (d *disorder) obeyAt(s *rigSite) {
	for _, id := range s.stops {
		if _, runs := s.running[id]; runs {
			d.over(s, id, executor.Result{Cause: executor.Stopped})
		}
	}
	s.stops = nil
}

// pass lets time go by: what is not renewed by then is ended by its fence.
func (d *disorder) pass(by time.Duration) {
	d.now = d.now.Add(by)
	d.apply()
	for _, s := range d.sites {
		for _, id := range s.live() {
			if fence := s.running[id].Fence; fence != 0 && max(fence, s.fence) <= d.boottime() {
				d.over(s, id, executor.Result{Cause: executor.Fenced})
			}
		}
	}
}

func (d *disorder) tick(t *rapid.T) {
	s := d.site(t)
	d.pass(TickEvery)
	s.turn(TickEvent{})
}

func (d *disorder) renew(t *rapid.T) { d.renewAt(d.site(t)) }

// renewAt renews a lease, as the leader would: of the present incarnation only.
func (d *disorder) renewAt(s *rigSite) {
	v, _ := d.state.Site(s.name)
	if (v.State == fsm.Alive || v.State == fsm.Suspected) && v.Incarnation == s.core.incarnation {
		s.lease(testLease)
	}
}

// pause lets a part of a lease pass; who is not renewed may end.
func (d *disorder) pause(t *rapid.T) {
	d.t = t
	d.pass(time.Duration(rapid.Int64Range(1, 7000).Draw(t, "ms")) * time.Millisecond)
}

// lose gives a site up, after its lease and the margin are over. The others have
// renewed theirs meanwhile.
func (d *disorder) lose(t *rapid.T) {
	s := d.site(t)
	by := d.site(t)
	v, _ := d.state.Site(s.name)
	judge, _ := d.state.Site(by.name)
	if by == s || v.State != fsm.Alive || judge.State != fsm.Alive || judge.Incarnation != by.core.incarnation {
		return
	}
	for range testLease/time.Second + 1 {
		d.pass(time.Second)
		for _, other := range d.sites {
			if other != s {
				d.renewAt(other)
			}
		}
	}
	by.turn(VerdictEvent{Verdicts{Term: 1, Lost: []coord.Renewal{{Site: s.name, Incarnation: v.Incarnation}}}})
	for i, cmd := range by.pending {
		if _, loss := cmd.Body.(*command.SiteLost); loss {
			d.orderOne(by, i)
			return
		}
	}
}

// restart kills a broker and starts it again; what it runs goes on.
func (d *disorder) restart(t *rapid.T) {
	s := d.site(t)
	d.mail[s], s.stops = nil, nil
	held, lost := s.reopen()
	s.register(held, lost)
	s.lease(testLease)
}

// power kills a machine: nothing is left of what it ran.
func (d *disorder) power(t *rapid.T) {
	s := d.site(t)
	clear(s.running)
	d.mail[s], s.stops = nil, nil
	held, lost := s.reopen()
	s.register(held, lost)
	s.lease(testLease)
}

// check looks at what has been started since the last step, and at the ends.
func (d *disorder) check(t *rapid.T) {
	d.t = t
	for _, s := range d.sites {
		for _, id := range s.history[d.read[s]:] {
			last, again := d.newest[nameOf(id)]
			if again && (id.Attempt <= last.Attempt || id.Token < last.Token) {
				t.Fatalf("%s was started at %s after %s", id, s.name, last)
			}
			if p := d.stopped[id.Job]; p != nil && d.isNew(p, s, id) {
				t.Fatalf("%s was started at %s, its cancel had been acknowledged at entry %d", id, s.name, p.stopped)
			}
			d.newest[nameOf(id)] = id
		}
		d.read[s] = len(s.history)
	}
	runs := map[taskName]executor.ID{}
	for _, s := range d.sites {
		for _, id := range s.live() {
			if other, twice := runs[nameOf(id)]; twice {
				t.Fatalf("%s and %s run at a time, the latter at %s", other, id, s.name)
			}
			runs[nameOf(id)] = id
		}
	}
	for _, p := range d.jobs {
		state, _, known := d.view(p)
		if p.end != "" && state != p.end {
			t.Fatalf("a job of %s ended as %s and is %q now", p.site.name, p.end, state)
		}
		if known && slices.Contains(ends, state) {
			p.end = state
		}
	}
}

// isNew reports whether an attempt of a cancelled job cannot have been on its
// way when the cancel was acknowledged. Home attempts are on no way.
func (d *disorder) isNew(p *promised, at *rigSite, id executor.ID) bool {
	if _, queued := d.state.Job(command.JobID{Site: p.site.name, Num: p.site.answers[p.answer].ID.Num}); queued {
		return id.Token > p.stopped
	}
	return at == p.site
}

// view is what the job's owner shows of it, in Broker.Job's order.
func (d *disorder) view(p *promised) (state string, counts map[string]uint32, known bool) {
	id, ok := p.id()
	if !ok {
		return "", nil, false
	}
	if v, ok := d.state.Job(id); ok {
		return v.State.String(), node.CountsOf(v.Counts, 0), true
	}
	own, known := p.site.core.own.Job(id.Num)
	return own.State, own.Counts, known
}
