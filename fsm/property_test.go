package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestStateMachine sends random commands of several sites, up to five an entry, to two replicas and checks every
// invariant after every entry. One replica is plain; the other also gets repeats of old commands, and is written
// and restored between entries: both must stay equal. `make fuzz-long` plays it for an hour.
func TestStateMachine(t *testing.T) { playModel(t, realBounds()) }

// TestStateMachineAtItsBounds is the same with bounds that are reached after a few steps.
func TestStateMachineAtItsBounds(t *testing.T) { playModel(t, smallBounds()) }

// TestStateMachineInParts is the same with entries that do little, so that work is left to the next ones, with and
// without commands in between.
func TestStateMachineInParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.steps = rapid.SampledFrom([]uint64{1, 100, 300, 2000}).Draw(rt, "steps")
		playModelAt(newModel(rt, b))
	})
}

// TestStateMachineRestoredAtEachEntry is TestStateMachineInParts with one replica that is restored before each
// entry: a snapshot must hold everything on which a decision depends.
func TestStateMachineRestoredAtEachEntry(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.steps = rapid.SampledFrom([]uint64{1, 100, 2000, maxSteps}).Draw(rt, "steps")
		m := newModel(rt, b)
		m.renewed = true
		playModelAt(m)
	})
}

// TestStateMachineAmongDeclines is the same with few kinds of jobs, many declines and few offers, so that
// sites have declined much of what waits.
func TestStateMachineAmongDeclines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, smallBounds())
		for _, x := range modelSites[:3] {
			m.send(m.w.cmd(x, m.w.offering(x, 2, 2, 1)))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.invariants, "submit": m.submitAlike, "submit2": m.submitAlike, "submit3": m.submitAlike,
			"decline": m.declineAll, "decline2": m.declineAll, "decline3": m.declineAll, "complete": m.complete, "deliver": m.deliver, "cancel": m.cancel,
			"renice": m.renice, "offer": m.seldom(m.offer), "register": m.seldom(m.register), "suspect": m.suspect, "lost": m.seldom(m.lost),
			"params": m.seldom(m.params), "tick": m.tick, "restore": m.restore,
		})
	})
}

// TestStateMachineAmongSubmissions is the same with sites that submit more than they may, end it and submit again.
func TestStateMachineAmongSubmissions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, smallBounds())
		for _, x := range modelSites[:3] {
			m.send(m.w.cmd(x, m.w.offering(x, 2, 2, 1)))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.invariants, "submit": m.submit, "submit2": m.submitMany, "submit3": m.submitMany, "submit4": m.submitMany,
			"cancel": m.cancelAny, "cancel2": m.cancelAny, "renice": m.renice, "complete": m.complete, "deliver": m.deliver,
			"leave": m.seldom(m.leave), "register": m.seldom(m.register),
			"forget": m.seldom(m.forget), "params": m.seldom(m.params), "tick": m.tick, "restore": m.restore,
		})
	})
}

// TestStateMachineAmongReturns is TestStateMachineAmongDeclines with sites that leave and return, several times an
// entry, and do other things in between.
func TestStateMachineAmongReturns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.boots = 8
		m := newModel(rt, b)
		m.enrols = 3
		for _, x := range modelSites[:3] {
			m.send(m.w.cmd(x, m.w.offering(x, 2, 2, 1)))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.invariants, "submit": m.submitAlike, "submit2": m.submitAlike, "decline": m.declineAll, "decline2": m.declineAll,
			"returns": m.returns, "returns2": m.returns, "complete": m.complete, "deliver": m.deliver, "cancel": m.cancel, "renice": m.renice, "offer": m.seldom(m.offer),
			"lost": m.seldom(m.lost), "params": m.seldom(m.params), "tick": m.tick, "restore": m.restore,
		})
	})
}

// TestStateMachineAhead is the same with sites that are assigned tasks ahead and end what they run after short runs.
func TestStateMachineAhead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.held = rapid.SampledFrom([]int{6, 30}).Draw(rt, "held")
		b.site.MilliCPU = rapid.SampledFrom([]int64{14_000, 40_000}).Draw(rt, "most")
		b.steps = rapid.SampledFrom([]uint64{300, maxSteps, maxSteps}).Draw(rt, "steps")
		m := newModel(rt, b)
		m.do("a", &command.Raise{Version: command.AheadVersion})
		for _, x := range modelSites[:3] {
			m.send(m.w.cmd(x, m.w.offering(x, 2, 3, 1)))
			m.send(m.w.cmd(x, &command.Ahead{IdleMs: 1000}))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.invariants, "submit": m.submitAlike, "submit2": m.submitAlike, "complete": m.complete, "complete2": m.complete,
			"complete3": m.complete, "started": m.started, "deliver": m.deliver, "handBack": m.handBack, "ahead": m.seldom(m.ahead),
			"decline": m.seldom(m.decline), "cancel": m.seldom(m.cancel), "offer": m.seldom(m.offer), "bound": m.seldom(m.bound),
			"register": m.seldom(m.register), "suspect": m.seldom(m.suspect), "lost": m.seldom(m.lost),
			"params": m.seldom(m.params), "tick": m.tick, "restore": m.restore,
		})
	})
}

// returns makes a site leave and return in one entry, up to three times; in between, it and others submit, decline
// and cancel.
func (m *model) returns(t *rapid.T) {
	m.t = t
	site := m.site()
	if !m.w.s.byName[site].present() {
		m.enrol(site)
	}
	m.send()
	other := m.site()
	declines := m.w.s.Assignments(other)
	var cmds []command.Command
	for range rapid.IntRange(1, 3).Draw(t, "times") {
		cmds = append(cmds, m.w.returns(site, 1)...)
		switch rapid.IntRange(0, 4).Draw(t, "beside") {
		case 0:
			cmds = append(cmds, m.w.cmd(site, &command.Submit{Jobs: []command.JobSpec{m.w.job(site, 2)}}))
		case 1:
			cmds = append(cmds, m.w.cmd(site, m.w.offering(site, 2, 1)))
		case 2:
			if other != site && len(declines) > 0 && !declines[0].Started {
				cmds = append(cmds, m.w.cmd(other, &command.Decline{Attempts: []command.AttemptRef{
					declines[0].AttemptRef,
				}}))
				declines = declines[1:]
			}
		case 3:
			if nums := slices.Sorted(maps.Keys(m.w.s.byName[site].nums)); len(nums) > 0 {
				cmds = append(cmds, m.w.cmd(site, &command.Cancel{
					Job: command.JobID{Site: site, Num: rapid.SampledFrom(nums).Draw(t, "num")}, Task: -1,
				}))
			}
		}
	}
	m.send(cmds...)
}

// submitMany submits small jobs with gaps between their numbers.
func (m *model) submitMany(t *rapid.T) {
	m.t = t
	site := m.site()
	var jobs []command.JobSpec
	for range rapid.IntRange(1, 5).Draw(t, "jobs") {
		m.w.num[site] += rapid.Uint64Range(0, 1).Draw(t, "gap")
		j := m.w.job(site, 1)
		j.Payload, j.Delivers = make([]byte, rapid.IntRange(0, 3).Draw(t, "bytes")), rapid.Bool().Draw(t, "delivers")
		jobs = append(jobs, j)
	}
	m.do(site, &command.Submit{Jobs: jobs, Settled: m.w.s.byName[site].settled + rapid.Uint64Range(0, 1).Draw(t, "settled")})
}

// cancelAny cancels a job in the state.
func (m *model) cancelAny(t *rapid.T) {
	m.t = t
	site := m.site()
	if nums := slices.Sorted(maps.Keys(m.w.s.byName[site].nums)); len(nums) > 0 {
		m.do(site, &command.Cancel{Job: command.JobID{Site: site, Num: rapid.SampledFrom(nums).Draw(t, "num")}, Task: -1})
	}
}

// seldom runs one in four of the steps.
func (m *model) seldom(step func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
			step(t)
		}
	}
}

// submitAlike submits jobs of two sizes.
func (m *model) submitAlike(t *rapid.T) {
	m.t = t
	site := m.site()
	j := m.w.job(site, rapid.Uint32Range(1, 3).Draw(t, "count"))
	j.Need.MilliCPU = rapid.Int64Range(1, 2).Draw(t, "cores") * 1000
	j.Priority = rapid.Int32Range(0, 1).Draw(t, "priority")
	j.MaxAttempts, j.Delivers = 2, rapid.Bool().Draw(t, "delivers")
	j.Gated = m.w.s.version >= command.GatesVersion && rapid.IntRange(0, 3).Draw(t, "gated") == 0
	m.do(site, &command.Submit{Jobs: []command.JobSpec{j}})
}

// fillThenAsk makes a site run as many tasks as it may while some of its machines rest, submits something
// that these fit, and ends a task elsewhere at that site: random steps hardly ever meet all of that.
func (m *model) fillThenAsk(t *rapid.T) {
	m.t = t
	site, most := m.site(), m.w.s.bounds.held
	if most > 100 || m.w.s.byName[site].state != Alive {
		return
	}
	o := m.w.offering(site, int64(most))
	o.Machines = append(o.Machines, command.Machine{Name: "z", Resources: command.Resources{MilliCPU: 1000, GPU: 1}})
	job := func(count uint32, cores, gpus int64) command.JobSpec {
		j := m.w.job(site, count)
		j.Need, j.Only = command.Resources{MilliCPU: cores * 1000, GPU: gpus}, []string{site}
		return j
	}
	m.send(m.w.cmd(site, o))
	m.send(m.w.cmd(site, &command.Submit{Jobs: []command.JobSpec{job(1, int64(most)+1, 0)}})) // fits nothing
	m.send(m.w.cmd(site, &command.Submit{Jobs: []command.JobSpec{job(uint32(most), 1, 0)}}))
	m.send(m.w.cmd(site, &command.Submit{Jobs: []command.JobSpec{job(1, 1, 1)}}))
	m.invariants(t)
	for _, a := range m.w.s.Assignments(site) {
		if a.Machine != "z" {
			m.dead[taskKey{m.w.s.findJob(a.Job), a.Task}] = true
			m.send(m.w.cmd(site, &command.Complete{Attempts: []command.Ended{ended(a, command.Stopped, 1)}}))
			break
		}
	}
}

// declineAll declines some or all of what a site was assigned, without a new offer.
func (m *model) declineAll(t *rapid.T) {
	m.t = t
	site := m.site()
	c := &command.Decline{Reason: "busy", Unopened: rapid.Bool().Draw(t, "unopened")}
	for _, a := range m.w.s.Assignments(site) {
		if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
			c.Attempts = append(c.Attempts, a.AttemptRef)
		}
	}
	m.do(site, c)
}

// smallBounds returns bounds as small as they can be while something is left to do.
func smallBounds() bounds {
	return bounds{
		window: 8, shapes: 4, members: len(modelSites), held: 6,
		site: command.Resources{MilliCPU: 14_000, MemMiB: command.MaxMemMiB, GPU: 4}, boots: 2, doubts: 2,
		detail: 5, retire: 3, steps: maxSteps,
		tasks: share{140, 31}, jobs: share{24, 3}, bytes: share{100, 24}, kept: share{16, 2},
		keptBytes: share{300, 30}, records: share{24, 4}, delivering: share{12, 2}, gaps: 1,
		reserveEveryMs: 300, reserveAtOnce: 1, ranTasks: 4, stopMs: 2500,
	}
}

func playModel(t *testing.T, b bounds) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) { playModelAt(newModel(rt, b)) })
}

func playModelAt(m *model) {
	m.t.Repeat(map[string]func(*rapid.T){
		"":         m.invariants,
		"submit":   m.submit,
		"submit2":  m.submit,
		"offer":    m.offer,
		"offer2":   m.offer,
		"started":  m.started,
		"bound":    m.bound,
		"bound2":   m.bound,
		"complete": m.complete,
		"finish":   m.complete,
		"deliver":  m.deliver,
		"decline":  m.decline,
		"ahead":    m.ahead,
		"handBack": m.handBack,
		"cancel":   m.cancel,
		"renice":   m.renice,
		"release":  m.release, "release2": m.seldom(m.releaseAll), "priority": m.prioritize,
		"fill":     m.seldom(m.fillThenAsk),
		"usage":    m.usage,
		"lost":     m.lost,
		"register": m.register,
		"forget":   m.forget,
		"leave":    m.leave,
		"suspect":  m.suspect,
		"early":    m.early,
		"raise":    m.raise,
		"recover":  m.recover,
		"params":   m.params,
		"tick":     m.tick,
		"term":     m.newTerm,
		"restore":  m.restore,
	})
}

var modelSites = []string{"a", "b", "c", "d"}

type model struct {
	w       *world
	twin    *State
	next    []command.Command // of the entry that is being filled
	lone    bool              // each command is an entry of its own
	renewed bool              // the twin is restored before each entry
	enrols  int               // greatest number of registrations of a site in an entry
	asked   uint32            // version of the last Raise: a site that registers later knows it
	past    []command.Command // executed ones
	// alone means that the twin is not played. sent is called with each entry, entries holds earlier ones.
	alone   bool
	sent    func(*command.Batch) (after func())
	entries []*command.Batch
	heard   func() // called after each entry of beginDeliveries, if set
	seen    map[command.ID]command.Result
	t       *rapid.T
	// bounded are the attempts with a bound before this step, dead those that their sites reported dead in it.
	bounded map[taskKey]attempt
	dead    map[taskKey]bool
}

func newModel(t *rapid.T, b bounds) *model {
	b.version = Version + 1 // as for a later program with the same rules
	m := &model{t: t, enrols: 1, seen: map[command.ID]command.Result{}, twin: newState(b), dead: map[taskKey]bool{}}
	m.w = &world{
		t: t, s: newState(b), term: 1,
		seq: map[string]uint64{}, inc: map[string]uint64{}, offer: map[string]uint64{}, num: map[string]uint64{},
	}
	m.send(command.Command{
		ID:   command.ID{Site: "a"},
		Body: &command.Genesis{Federation: [16]byte{7}, Seed: rapid.Uint64().Draw(t, "seed"), Params: modelParams(t)},
	})
	for _, x := range modelSites[:3] {
		m.enrol(x)
	}
	if rapid.IntRange(0, 3).Draw(t, "other") > 0 {
		m.params(t)
	}
	return m
}

func modelParams(t *rapid.T) command.Params {
	return command.Params{
		Policy: rapid.SampledFrom([]string{
			sched.OrigDirect, sched.RelDirect, sched.SimplDirect, sched.FairShare, sched.RoundRobin,
		}).Draw(t, "policy"),
		Running: sched.Mode(rapid.IntRange(0, 1).Draw(t, "mode")), PreferOwn: rapid.Bool().Draw(t, "preferOwn"),
		FixedOrder: rapid.Bool().Draw(t, "fixed"), ClaimedHome: rapid.Bool().Draw(t, "claimed"),
		ReserveAfterMs: rapid.SampledFrom([]int64{0, 1, 3000}).Draw(t, "reserve"),
		RetainMs:       rapid.SampledFrom([]int64{0, 5000, 1 << 30}).Draw(t, "retain"),
		RetainJobs:     rapid.Int64Range(0, 20).Draw(t, "jobs"),
		DepartureMs:    rapid.SampledFrom([]int64{0, 5000, 1 << 30}).Draw(t, "departure"), RateCPU: 1,
		QuantumMs: 1, RateGPU: rapid.Int64Range(0, 9).Draw(t, "rate"), MarginMs: 700,
	}
}

// send applies one entry to both replicas, with repeats for the twin: the deferred commands and those given, whose
// results it returns. The twin gets the entry as decoded from its bytes.
func (m *model) send(given ...command.Command) []command.Result {
	cmds := append(m.next, given...)
	m.next = nil
	b := &command.Batch{Term: m.w.term, Elapsed: m.w.base, Commands: cmds}
	m.expectQuotas(b)
	var want string
	var results []command.Result
	asked := m.w.s.params.FixedOrder && !m.w.s.unfinished()
	if asked {
		want, results = m.w.s.oracle(m.t, b)
	}
	var after func()
	if m.alone {
		after = m.sent(b)
	}
	got, err := m.w.s.Apply(b)
	if err != nil {
		m.t.Fatal(err)
	}
	if m.alone {
		after()
		return got[len(cmds)-len(given):]
	}
	for i, r := range results { // what is full until later entries did the rest refuses jobs that the oracle takes
		asked = asked && r.Code == got[i].Code && slices.Equal(r.Jobs, got[i].Jobs)
	}
	asked = asked && !(m.w.s.unfinished() && boundAfterCancel(cmds))
	asked = asked && !(len(m.w.s.earned) > 0 && m.w.s.steps.spent()) // tasks ahead are no work for later entries
	m.entries = append(m.entries, b)
	var twice []command.Command
	done := slices.Clone(m.past) // but what no version in force had: a repeat of it is its first time
	for _, c := range cmds {
		twice = append(twice, c)
		if m.twin.allows(c.Body) {
			done = append(done, c)
		}
		for range rapid.IntRange(0, 2).Draw(m.t, "repeats") {
			pool := done
			if len(pool) == 0 {
				break
			}
			c := pool[rapid.IntRange(0, len(pool)-1).Draw(m.t, "which")]
			if !m.forgotten(c) {
				twice = append(twice, c)
			}
		}
	}
	read, err := command.DecodeBatch((&command.Batch{Term: b.Term, Elapsed: b.Elapsed, Commands: twice}).Append(nil))
	if err != nil {
		m.t.Fatal(err)
	}
	if m.renewed {
		m.renew()
	}
	again, err := m.twin.Apply(read)
	if err != nil {
		m.t.Fatal(err)
	}
	if len(twice) == len(cmds) {
		m.compareSteps()
	}
	for i, c := range cmds {
		if c.ID.Seq > 0 && slices.ContainsFunc(done, func(d command.Command) bool { return d.ID == c.ID }) {
			m.seen[c.ID] = got[i]
		}
	}
	for i, c := range twice {
		if want, ok := m.seen[c.ID]; ok && again[i].Code != command.Stale && again[i].Code != command.OldIncarnation &&
			(again[i].Code != want.Code || again[i].Index != want.Index && want.Code != command.WindowFull ||
				!slices.Equal(again[i].Jobs, want.Jobs)) {
			m.t.Fatalf("repeat of %v %T gave %+v, first %+v", c.ID, c.Body, again[i], want)
		}
	}
	m.past = done
	if asked && m.w.s.params.FixedOrder || rapid.Bool().Draw(m.t, "drain") {
		m.drain()
	}
	if have := m.w.s.lives(); asked && m.w.s.params.FixedOrder && have != want {
		m.t.Fatalf("entry %d\nlive:\n%s\nthe oracle says:\n%s", m.w.s.index, have, want)
	}
	return got[len(cmds)-len(given):]
}

// boundAfterCancel reports whether a bound stands behind a job's cancellation. Where later entries do most of that, the
// bound comes first and grows, so an attempt that the oracle's cancellation finds past its bound is stopped instead.
func boundAfterCancel(cmds []command.Command) bool {
	cancelled := false
	for _, c := range cmds {
		switch b := c.Body.(type) {
		case *command.Cancel:
			cancelled = cancelled || b.Task < 0
		case *command.Bound:
			if cancelled {
				return true
			}
		}
	}
	return false
}

// drain applies entries without commands until nothing is left to do.
func (m *model) drain() {
	for n := 0; m.w.s.Pending(); n++ {
		if n > 100_000 {
			m.t.Fatalf("entry %d: work is left forever", m.w.s.index)
		}
		m.invariants(m.t)
		if used := m.w.s.Steps(); n > 0 && used.Used > used.Bound+used.Bound/4+1000 { // one unit may exceed it
			m.t.Fatalf("entry %d without commands took %d steps of %d", m.w.s.index, used.Used, used.Bound)
		}
		if m.renewed {
			m.renew()
		}
		for _, s := range []*State{m.w.s, m.twin} {
			if _, err := s.Apply(&command.Batch{Term: m.w.term, Elapsed: m.w.base}); err != nil {
				m.t.Fatal(err)
			}
		}
		m.compareSteps()
	}
}

// compareSteps: replicas that count differently will sooner or later cut an entry at different places.
func (m *model) compareSteps() {
	if live, twin := m.w.s.Steps().Used, m.twin.Steps().Used; live != twin {
		m.t.Fatalf("entry %d took %d steps, the twin's %d", m.w.s.index, live, twin)
	}
}

// forgotten reports whether c is a registration of a process that ended so long ago that the state no longer knows
// it.
func (m *model) forgotten(c command.Command) bool {
	r, ok := c.Body.(*command.Register)
	x := m.twin.byName[c.ID.Site]
	return ok && x != nil && !slices.Contains(x.boots[:min(len(x.boots), m.twin.bounds.boots-m.enrols)], r.Boot)
}

func (m *model) enrol(site string) {
	c := m.w.registration(site, nil, nil)
	reg := c.Body.(*command.Register)
	reg.MaxVersion = rapid.Uint32Range(max(Version, m.asked), Version+1).Draw(m.t, "knows")
	for _, a := range m.w.s.Assignments(site) {
		switch rapid.IntRange(0, 2).Draw(m.t, "fate") {
		case 0:
			reg.Held = append(reg.Held, a.AttemptRef)
		case 1:
			reg.Lost = append(reg.Lost, a.AttemptRef)
		}
	}
	r := m.send(c)[0]
	if r.Code != command.OK {
		m.t.Fatalf("register %s: %v", site, r.Code)
	}
	m.w.inc[site], m.w.seq[site], m.w.offer[site], m.w.num[site] = r.Incarnation, 0, 0, r.NextJob-1
}

func (m *model) site() string {
	return rapid.SampledFrom(modelSites[:len(m.w.inc)]).Draw(m.t, "site")
}

// do sends one command, often together with others, which wait for it.
func (m *model) do(site string, b command.Body) {
	c := m.w.cmd(site, b)
	if !m.lone && len(m.next) < 4 && rapid.Bool().Draw(m.t, "beside") {
		m.next = append(m.next, c)
		return
	}
	m.send(c)
}

func (m *model) submit(t *rapid.T) {
	m.t = t
	site := m.site()
	var jobs []command.JobSpec
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		j := m.w.job(site, uint32(rapid.SampledFrom([]int{1, 1, 2, 5, 30}).Draw(t, "count")))
		j.Need.MilliCPU = rapid.Int64Range(1, 4).Draw(t, "cores") * 1000
		j.Need.GPU = rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "gpus")
		j.Image = rapid.IntRange(0, 3).Draw(t, "image") == 0
		j.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
		j.MaxAttempts = uint32(rapid.IntRange(1, 3).Draw(t, "attempts"))
		j.OnLoss = command.OnLoss(rapid.IntRange(0, 2).Draw(t, "onLoss"))
		j.TimeoutMs = rapid.SampledFrom([]int64{0, 500}).Draw(t, "timeout")
		j.Payload = []byte{byte(rapid.IntRange(0, 3).Draw(t, "payload"))}
		j.Delivers = rapid.Bool().Draw(t, "delivers")
		j.Gated = m.w.s.version >= command.GatesVersion && rapid.IntRange(0, 3).Draw(t, "gated") == 0
		switch rapid.IntRange(0, 5).Draw(t, "where") {
		case 0:
			j.Only = []string{m.site()}
		case 1:
			j.Not = []string{m.site()}
		}
		j.Selectors = m.drawSelectors()
		if rapid.IntRange(0, 9).Draw(t, "oldNumber") == 0 {
			j.Num = rapid.Uint64Range(1, j.Num).Draw(t, "num")
		}
		jobs = append(jobs, j)
	}
	m.do(site, &command.Submit{Jobs: jobs, Settled: rapid.Uint64Range(0, m.w.num[site]/2).Draw(t, "settled")})
}

// drawSelectors draws a job's selectors and drawMarks a machine's labels and slots. Most have none.
func (m *model) drawSelectors() []string {
	return rapid.SampledFrom([][]string{
		nil, nil, nil, nil, {"gpu"}, {"!gpu"}, {"gpu=a"}, {"gpu!=a", "zone=x"}, {"gpu in (a,b)"}, {"gpu notin (a,b)"}, {"zone=x"}, {"zone=nowhere"},
	}).Draw(m.t, "selectors")
}

func (m *model) drawMarks() (l command.Labels, slots int64) {
	return rapid.SampledFrom([]command.Labels{"", "", "gpu=a", "gpu=b,zone=x", "gpu=,zone=x", "zone=x"}).Draw(m.t, "labels"),
		rapid.SampledFrom([]int64{0, 0, 0, 1, 2}).Draw(m.t, "slots")
}

func (m *model) drawOffer(site string) *command.Offer {
	o := m.w.offering(site)
	for i := range rapid.IntRange(0, 3).Draw(m.t, "machines") {
		labels, slots := m.drawMarks()
		o.Machines = append(o.Machines, command.Machine{
			Labels: labels, Slots: slots,
			Name: string(rune('k' + 2*i + rapid.IntRange(0, 1).Draw(m.t, "name"))),
			Resources: command.Resources{
				MilliCPU: rapid.Int64Range(0, 6).Draw(m.t, "cores") * 1000, MemMiB: 0,
				GPU: rapid.Int64Range(0, 2).Draw(m.t, "gpus"),
			},
			Whole: command.Resources{MilliCPU: rapid.Int64Range(0, 6).Draw(m.t, "whole") * 1000},
			Runs: rapid.SampledFrom([]command.Runs{
				command.RunsCommands, command.RunsCommands, command.RunsImages, command.RunsBoth,
			}).Draw(m.t, "runs"),
		})
	}
	o.Home.MilliCPU = rapid.Int64Range(0, 2).Draw(m.t, "home")
	return o
}

func (m *model) offer(t *rapid.T) {
	m.t = t
	site := m.site()
	m.do(site, m.drawOffer(site))
}

// someAttempts returns some live attempts of the site, occasionally with a wrong token.
func (m *model) someAttempts(site string) []command.AttemptRef {
	var out []command.AttemptRef
	for _, a := range m.w.s.Assignments(site) {
		ref := a.AttemptRef
		switch rapid.IntRange(0, 7).Draw(m.t, "pick") {
		case 0:
			ref.Token--
		case 1, 2, 3:
			continue
		}
		out = append(out, ref)
	}
	return out
}

func (m *model) started(t *rapid.T) {
	m.t = t
	site := m.site()
	c := &command.Started{}
	for _, ref := range m.someAttempts(site) {
		c.Attempts = append(c.Attempts, command.StartedAttempt{
			AttemptRef: ref, DelayMs: rapid.Int64Range(0, 2000).Draw(t, "delay"),
		})
	}
	m.do(site, c)
}

// bound declares bounds, for started attempts too, where they are ignored.
func (m *model) bound(t *rapid.T) {
	m.t = t
	site := m.site()
	c := &command.Bound{}
	for _, ref := range m.someAttempts(site) {
		c.Attempts = append(c.Attempts, command.BoundAttempt{
			AttemptRef: ref, BoundMs: rapid.Int64Range(1, 6000).Draw(t, "bound"),
		})
	}
	m.do(site, c)
}

func (m *model) complete(t *rapid.T) {
	m.t = t
	site := m.site()
	c, orphans := &command.Complete{}, rapid.IntRange(0, 3).Draw(t, "orphans") == 0
	for _, ref := range m.someAttempts(site) {
		outcome := command.Orphaned
		if !orphans {
			outcome = command.Outcome(rapid.IntRange(0, int(command.Lost)).Draw(t, "outcome"))
		}
		c.Attempts = append(c.Attempts, command.Ended{
			AttemptRef: ref, Outcome: outcome,
			ExitCode: int32(rapid.IntRange(0, 2).Draw(t, "exit")),
			Ran:      rapid.Bool().Draw(t, "ran"), DelayMs: rapid.Int64Range(0, 2000).Draw(t, "delay"),
			RunMs:  rapid.Int64Range(0, 5000).Draw(t, "run"),
			Detail: rapid.SampledFrom([]string{"", "why"}).Draw(t, "detail"),
			Output: m.drawOutput(), Measured: m.drawMeasured(),
		})
		if c.Attempts[len(c.Attempts)-1].Outcome != command.Lost {
			m.dead[taskKey{m.w.s.findJob(ref.Job), ref.Task}] = true
		}
	}
	if orphans {
		m.do(site, (*command.Orphans)(c))
		return
	}
	m.do(site, c)
}

// drawOutput draws what was collected of an attempt, sometimes nothing, and drawMeasured what it used.
func (m *model) drawOutput() command.Output {
	return rapid.SampledFrom([]command.Output{
		{},
		{Manifest: [32]byte{1}, Size: 90, Bytes: 7},
		{Manifest: [32]byte{31: 2}, Size: command.MaxManifest, Bytes: command.MaxOutputBytes},
	}).Draw(m.t, "output")
}

func (m *model) drawMeasured() command.Measured {
	return rapid.SampledFrom([]command.Measured{
		{},
		{PeakBytes: 1 << 30, UserMs: 900, SystemMs: 1, InBytes: 2, OutBytes: 3, Source: command.MeasuredCgroup},
		{Source: command.MeasuredRusage},
	}).Draw(m.t, "measured")
}

// deliver says of some outputs of a site's tasks what became of them, occasionally with a wrong token, or of another
// site's tasks.
func (m *model) deliver(t *rapid.T) {
	m.t = t
	site, c := m.site(), &command.Deliver{}
	of := site
	if rapid.IntRange(0, 7).Draw(t, "other") == 0 {
		of = m.site()
	}
	for _, d := range m.w.s.Deliveries(of) {
		switch rapid.IntRange(0, 7).Draw(t, "pick") {
		case 0:
			d.Token--
		case 1, 2:
			continue
		}
		c.Attempts = append(c.Attempts, command.Delivered{
			AttemptRef: d.AttemptRef, Outcome: command.Delivery(rapid.IntRange(0, 2).Draw(t, "outcome")),
			Detail: rapid.SampledFrom([]string{"", "why"}).Draw(t, "detail"),
		})
	}
	m.do(site, c)
}

func (m *model) decline(t *rapid.T) {
	m.t = t
	site := m.site()
	c := &command.Decline{Attempts: m.someAttempts(site), Reason: "busy", Unopened: rapid.Bool().Draw(t, "unopened")}
	if rapid.Bool().Draw(t, "withOffer") {
		c.Offer = m.drawOffer(site)
	}
	m.do(site, c)
}

// ahead says how long a site's machines idle between tasks; handBack returns some of what it is assigned.
func (m *model) ahead(t *rapid.T) {
	m.t = t
	m.do(m.site(), &command.Ahead{IdleMs: rapid.SampledFrom([]int64{0, 100, 1000, 5000}).Draw(t, "idle")})
}

func (m *model) handBack(t *rapid.T) {
	m.t = t
	site := m.site()
	m.do(site, &command.HandBack{Attempts: m.someAttempts(site), Reason: rapid.SampledFrom([]string{"", "why"}).Draw(t, "why")})
}

func (m *model) cancel(t *rapid.T) {
	m.t = t
	site := m.site()
	num := rapid.Uint64Range(1, m.w.num[site]+1).Draw(t, "num")
	m.do(site, &command.Cancel{
		Job: command.JobID{Site: site, Num: num}, Task: rapid.Int64Range(-1, 30).Draw(t, "task"),
		At: rapid.SampledFrom([]string{"", "", "a", "c", "nobody"}).Draw(t, "at"),
	})
}

func (m *model) usageRows(t *rapid.T) []command.UsageRow {
	var rows []command.UsageRow
	for range rapid.IntRange(0, 3).Draw(t, "rows") {
		rows = append(rows, command.UsageRow{
			Job: 1, Need: command.Resources{MilliCPU: 1000}, AgoMs: rapid.Int64Range(0, 3000).Draw(t, "ago"),
			RunMs: rapid.Int64Range(0, 3000).Draw(t, "run"), WaitMs: rapid.Int64Range(0, 3000).Draw(t, "wait"),
		})
	}
	return rows
}

func (m *model) usage(t *rapid.T) {
	m.t = t
	site := m.site()
	next := m.w.s.byName[site].usageBatch + uint64(rapid.IntRange(0, 1).Draw(t, "next"))
	m.do(site, &command.Usage{Batch: next, Rows: m.usageRows(t)})
}

func (m *model) lost(t *rapid.T) {
	m.t = t
	by, site := m.site(), m.site()
	m.do(by, &command.SiteLost{
		Site: site, Incarnation: m.w.inc[site], Term: m.w.term - uint64(rapid.IntRange(0, 4).Draw(t, "old")/4),
	})
}

func (m *model) register(t *rapid.T) {
	m.t = t
	site := rapid.SampledFrom(modelSites).Draw(t, "site")
	if n := len(m.w.inc); slices.Index(modelSites, site) > n {
		site = modelSites[n]
	}
	m.enrol(site)
}

func (m *model) forget(t *rapid.T) {
	m.t = t
	if rapid.IntRange(0, 2).Draw(t, "rarely") == 0 {
		m.do(m.site(), &command.Forget{Site: m.site()})
	}
}

func (m *model) raise(t *rapid.T) {
	m.t = t
	m.asked = rapid.Uint32Range(max(command.FirstVersion, m.asked), Version+1).Draw(t, "version")
	m.do(m.site(), &command.Raise{Version: m.asked})
}

// recover begins an epoch at a site: nothing is assigned, and nobody else is present.
func (m *model) recover(t *rapid.T) {
	m.t = t
	if rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		return
	}
	s, site := m.w.s, m.site()
	m.send(command.Command{ID: command.ID{Site: site}, Body: &command.Recover{
		Epoch: s.Epoch() + rapid.Uint64Range(0, 2).Draw(t, "epochs") + 1, HoldMs: rapid.SampledFrom([]int64{0, 3000}).Draw(t, "hold"),
	}})
	if s.index < command.StartOf(s.Epoch()) || s.HeldMs() < s.params.MarginMs {
		t.Fatalf("entry %d, held for %d ms", s.index, s.HeldMs())
	}
	for _, x := range s.sites {
		if x.present() && x.name != site || x.exposed != (command.Resources{}) {
			t.Fatalf("%s keeps its place: %+v", x.name, x.exposed)
		}
	}
}

func (m *model) leave(t *rapid.T) {
	m.t = t
	if rapid.IntRange(0, 2).Draw(t, "rarely") == 0 {
		m.do(m.site(), &command.Leave{})
	}
}

func (m *model) suspect(t *rapid.T) {
	m.t = t
	by, site := m.site(), m.site()
	m.do(by, &command.Suspect{Site: site, Incarnation: m.w.inc[site], On: rapid.Bool().Draw(t, "on")})
}

// early sends a command too far above what it acknowledges; copies follow later.
func (m *model) early(t *rapid.T) {
	m.t = t
	site := m.site()
	c := m.w.cmd(site, &command.Submit{Jobs: []command.JobSpec{m.w.job(site, 1)}})
	c.ID.Seq += m.w.s.bounds.window
	m.w.seq[site] = c.ID.Seq
	m.send(c)
}

func (m *model) params(t *rapid.T) {
	m.t = t
	p := modelParams(t)
	if rapid.Bool().Draw(t, "projected") {
		p.Policy = rapid.SampledFrom(sched.Projected()).Draw(t, "policy")
	}
	m.do(m.site(), &command.SetParams{Params: p})
}

func (m *model) tick(t *rapid.T) {
	m.t = t
	m.w.base += rapid.Int64Range(0, 2000).Draw(t, "ms")
	m.send()
}

func (m *model) newTerm(t *rapid.T) {
	m.t = t
	m.w.term++
	m.w.base = 0
	m.send()
}

// restore replaces the twin by what its snapshot gives, which was taken before another entry was applied and
// written after.
func (m *model) restore(t *rapid.T) {
	m.t = t
	f := m.twin.Snapshot()
	before := m.twin.Hash()
	m.tick(t)
	if f.Hash() != before {
		t.Fatal("an entry changed a snapshot taken before it")
	}
	f.Release()
	m.renew()
}

// renew replaces the twin by what its snapshot gives.
func (m *model) renew() {
	r, err := reborn(m.twin)
	if err != nil {
		m.t.Fatal(err)
	}
	m.twin = r
}

func (m *model) invariants(t *rapid.T) {
	if len(m.next) > 0 { // the entry is not complete
		return
	}
	m.t = t
	m.w.t = t
	if m.w.s.Pending() != m.twin.Pending() {
		t.Fatalf("entry %d: work is left on one replica only", m.w.s.index)
	}
	for _, s := range []*State{m.w.s, m.twin} {
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
	}
	if m.w.s.Hash() != m.twin.Hash() {
		t.Fatalf("replicas differ at entry %d", m.w.s.index)
	}
	m.newAttempts(t)
	m.bounds(t)
	page, _ := m.w.s.Jobs(JobFilter{}, 0, 3) // the newest, which change
	for i := range page {
		checkScan(t, m.w.s, page[i].ID)
	}
	if m.w.s.unfinished() {
		return
	}
	for _, mc := range m.w.s.machinesInOrder() {
		if seqs := m.w.s.fitting(mc); len(seqs) > 0 {
			t.Fatalf("machine %s/%s is idle, jobs %v wait and fit", mc.site.name, mc.name, seqs)
		}
	}
}

// newAttempts checks what the last entry assigned: it fits, and nothing that arrived earlier with equal shape and
// priority of the same owner was skipped.
func (m *model) newAttempts(t *rapid.T) {
	s := m.w.s
	for _, a := range s.attempts.All() {
		if a.token != s.index {
			continue
		}
		if s.holds() {
			t.Fatalf("job %d was assigned while a new epoch waits", a.seq)
		}
		j := s.jobs.Get(a.seq)
		times := int64(1) // of what is offered that may be assigned
		if slices.ContainsFunc(s.earned, func(e earning) bool { return e.machine == a.machine }) {
			times = 3
		}
		if o, used := a.machine.exposed, a.machine.used; used.MilliCPU > times*o.MilliCPU || used.GPU > times*o.GPU {
			t.Fatalf("machine %s is overcommitted: %+v of %d times %+v", a.machine.name, used, times, o)
		}
		if a.machine.slots > 0 && a.machine.tasks > times*a.machine.slots ||
			!oracleSelects(a.machine, j.class.Selectors) {
			t.Fatalf(
				"job %d with %v is at machine %s with %q, %d tasks of %d", a.seq, j.class.Selectors,
				a.machine.name, a.machine.labels.text(), a.machine.tasks, a.machine.slots,
			)
		}
		if !oracleRuns[a.machine.runs][j.class.Image] {
			t.Fatalf("job %d (image %v) is at machine %s, which runs %s", a.seq, j.class.Image, a.machine.name, a.machine.runs)
		}
		if !j.class.Allows(s.sites[a.site].name) || j.isBarred(s.sites[a.site]) {
			t.Fatalf("job %d may not run at site %d", a.seq, a.site)
		}
		if s.params.ReserveAfterMs > 0 || len(j.class.barredFrom) > 0 {
			continue // a reserved machine takes its job first, a bar lets others pass
		}
		for seq, o := range s.jobs.All() {
			if seq < a.seq && o.class == j.class && o.owner == j.owner && o.order == j.order && o.waiting() > 0 {
				t.Fatalf("job %d was assigned before job %d", a.seq, seq)
			}
		}
	}
}

// bounds checks that no task was given up in this step while its attempt could still run: a loss comes after the
// bound, or with the site's own report of an end.
func (m *model) bounds(t *rapid.T) {
	s := m.w.s
	for key, a := range m.bounded {
		j := s.jobs.Get(key.seq)
		if j == nil || m.dead[key] || j.onLoss == command.Immediate || a.boundMs <= s.time {
			continue
		}
		if v := s.viewTask(key.seq, j, key.task); v.Losses > a.losses.bySite() {
			t.Fatalf("task %d/%d counts a loss at %d, its attempt may run until %d", key.seq, key.task, s.time, a.boundMs)
		}
	}
	m.bounded, m.dead = map[taskKey]attempt{}, map[taskKey]bool{}
	for _, a := range s.attempts.All() {
		if a.boundMs > 0 && a.phase != phaseLeft {
			m.bounded[taskKey{a.seq, a.task}] = *a
		}
	}
}
