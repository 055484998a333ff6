package fsm

import (
	"math/big"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/sched/schedtest"
)

// TestWaitsAreNaive compares, after every entry of random histories, everything that the policies of projected
// waits rank by with a mirror that sees only events.
func TestWaitsAreNaive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, v := newMirrored(rt)
		m.params(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.t, m.w.t, v.t = t, t, t
				v.hear()
			},
			"submit":   one(m, v, m.submit),
			"submit2":  one(m, v, m.submit),
			"submit3":  one(m, v, m.submit),
			"offer":    one(m, v, m.offer),
			"offer2":   one(m, v, m.offer),
			"started":  one(m, v, m.started),
			"bound":    one(m, v, m.bound),
			"complete": one(m, v, m.complete),
			"finish":   one(m, v, m.complete),
			"deliver":  one(m, v, m.deliver),
			"decline":  one(m, v, m.decline),
			"cancel":   one(m, v, m.cancel),
			"usage":    one(m, v, m.usage),
			"lost":     one(m, v, m.lost),
			"register": one(m, v, m.register),
			"forget":   one(m, v, m.forget),
			"leave":    one(m, v, m.leave),
			"suspect":  one(m, v, m.suspect),
			"recover":  one(m, v, m.recover),
			"params":   one(m, v, m.params),
			"raise":    one(m, v, m.raise),
			"tick":     one(m, v, m.tick),
		})
	})
}

// TestWaitsAreNaiveAmongDeliveries is the same with tasks that succeed elsewhere, and wait again if their outputs do
// not come.
func TestWaitsAreNaiveAmongDeliveries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, v := newMirrored(rt)
		one(m, v, m.params)(rt)
		m.heard = v.hear
		m.beginDeliveries()
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.t, m.w.t, v.t = t, t, t
				v.hear()
			},
			"submit": one(m, v, m.submitOutputs), "submit2": one(m, v, m.submitOutputs), "submit3": one(m, v, m.submit),
			"succeed": one(m, v, m.succeed), "succeed2": one(m, v, m.succeed), "complete": one(m, v, m.complete),
			"deliver": one(m, v, m.deliver), "deliver2": one(m, v, m.deliver), "cancel": one(m, v, m.cancelAny),
			"suspect": one(m, v, m.suspect), "lost": one(m, v, m.lost), "register": one(m, v, m.register),
			"leave": one(m, v, m.leave), "forget": one(m, v, m.forget), "tick": one(m, v, m.tick),
			"params": one(m, v, m.params), "policy": one(m, v, m.params),
		})
	})
}

// newMirrored returns a model whose entries have one command each, and a mirror that hears its events. For entries of
// several commands see waitsswitch_test.go.
func newMirrored(t *rapid.T) (*model, *mirror) {
	m := newModel(t, realBounds())
	m.lone = true
	v := &mirror{
		t: t, s: m.w.s, heard: m.w.s.index, tasks: map[mirrorKey]mirrorTask{}, sites: map[string]*mirrorSite{},
	}
	for _, x := range m.w.s.sites {
		v.join(x.name)
		v.sites[x.name].present = x.present()
	}
	v.adopt()
	m.w.s.Observe(&v.events)
	return m, v
}

// one runs an action, which is one entry, and gives its events to the mirror.
func one(m *model, v *mirror, f func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		v.t = t
		f(t)
		v.hear()
	}
}

// mirror follows tasks by their events, and every coalition's virtual queue core by core.
type mirror struct {
	t      *rapid.T
	s      *State // read for what events do not say: needs, shares, estimates, policy
	events []Event
	tasks  map[mirrorKey]mirrorTask
	sites  map[string]*mirrorSite
	order  []*mirrorSite

	heard  uint64 // entry
	policy string // "" = none by projected waits
	since  int64
	queues []*schedtest.Queue // by set of sites
}

type mirrorKey struct {
	job  command.JobID
	task uint32
}

type mirrorTask struct {
	waits      bool
	delivers   bool
	held       bool // it neither waits nor runs
	queuedMs   int64
	assignedMs int64
	width      int64
	booked     int64
	length     int64  // its expected length, once it is assigned
	released   uint64 // entry with which it was submitted, and waited
	again      uint64 // entry in which it got its attempt back while its owner was away
}

type mirrorSite struct {
	name    string
	present bool
	from    int64
	waited  int64 // Σ(s−r)
	cores   int64
	change  sched.Change
}

func (v *mirror) join(name string) {
	x := &mirrorSite{name: name, present: true, from: v.s.time}
	v.sites[name], v.order = x, append(v.order, x)
	for _, q := range v.queues { // a site that joins has nothing yet
		c := *q
		c.Work, c.Starts, c.Rels = new(big.Int).Set(q.Work), new(big.Int).Set(q.Starts), new(big.Int).Set(q.Rels)
		c.Cores, c.Away = append([]int64(nil), q.Cores...), append([]int64(nil), q.Away...)
		v.queues = append(v.queues, &c)
	}
}

// adopt takes over what existed before the mirror.
func (v *mirror) adopt() {
	for seq, j := range v.s.jobs.All() {
		for i := range j.count {
			x := v.s.viewTask(seq, j, i)
			_, live := v.s.live[taskKey{seq, i}]
			if !live && x.State.Ended() {
				continue
			}
			v.tasks[mirrorKey{v.s.idOf(j), i}] = mirrorTask{
				waits: !live && !x.Delivering && x.State != Held, held: !live && x.State == Held,
				delivers: x.Delivering, queuedMs: x.QueuedMs, assignedMs: x.AssignedMs,
				width: widthOf(j.class.Need),
			}
		}
	}
}

// hear reads one entry's events and compares.
func (v *mirror) hear() {
	if v.heard == v.s.index {
		return
	}
	v.heard = v.s.index
	for i := range v.events {
		v.event(&v.events[i])
	}
	v.events = v.events[:0]
	if v.policy == "" {
		return
	}
	for key, t := range v.tasks { // longer than expected
		for ; !t.waits && !t.delivers && !t.held && max(t.assignedMs, v.since)+t.length < v.s.time; t.length *= 2 {
			v.sites[key.job.Site].change.Longer.Add(t.width, t.length, 0)
		}
		v.tasks[key] = t
	}
	touched := uint(0)
	for i, x := range v.order {
		if c := lentCores(v.s.byName[x.name]); c != x.cores {
			x.change.Cores += c - x.cores
			x.cores = c
		}
		if x.change != (sched.Change{}) {
			touched |= 1 << i
		}
	}
	for set := range uint(len(v.queues)) {
		var sum sched.Change
		for i, x := range v.order {
			if set&(1<<i) != 0 {
				sum.Plus(&x.change)
			}
		}
		if set&touched != 0 {
			v.queues[set].Step(v.s.time, &sum, 4096)
		}
	}
	for _, x := range v.order {
		x.change = sched.Change{}
	}
	v.compare()
}

// lentCores returns what a site lends.
func lentCores(x *site) int64 {
	milli := int64(0)
	for _, m := range x.machines {
		milli += m.exposed.MilliCPU
	}
	return (milli + 999) / 1000
}

func (v *mirror) event(e *Event) {
	x := v.sites[e.Job.Site]
	switch e.Kind {
	case EventSiteRegistered:
		if v.sites[e.Site] == nil {
			v.join(e.Site)
		}
	case EventSiteLost, EventSiteLeft:
		v.away(v.sites[e.Site], e.Time)
	case EventSiteReturned:
		v.back(v.sites[e.Site], e.Time)
	case EventParamsChanged:
		v.change(e.Time)
	case EventJobSubmitted:
		j := v.s.jobs.Get(v.s.findJob(e.Job))
		for i := range e.Count {
			v.tasks[mirrorKey{e.Job, i}] = mirrorTask{
				waits: true, queuedMs: e.Time, width: widthOf(e.Need), booked: j.booked, released: e.Index,
			}
			x.change.New.Add(widthOf(e.Need), j.booked, 0)
		}
	case EventTaskAssigned, EventTaskRequeued, EventTaskResumed, EventTaskDelivering, EventTaskEnded, EventTaskHeld,
		EventTaskReleased:
		for i := range e.Count {
			v.task(x, mirrorKey{e.Job, e.Task + i}, e)
		}
	default:
	}
}

// task follows one task. While no policy of projected waits is in force nothing is counted.
func (v *mirror) task(x *mirrorSite, key mirrorKey, e *Event) {
	t, known := v.tasks[key]
	if !known {
		v.t.Fatalf("%s of a task that is not there: %v", e.Kind, key)
	}
	switch e.Kind {
	case EventTaskAssigned:
		x.waited += t.width * (e.Time - max(t.queuedMs, x.from))
		t.waits, t.assignedMs, t.length = false, e.Time, t.booked
	case EventTaskHeld: // it is no release any more
		switch {
		case t.delivers, t.held:
		case t.waits && e.Index == t.released:
			x.change.New.Sub(t.width, t.booked, 0)
		case t.waits && x.present:
			x.change.Gone.Add(t.width, t.booked, max(t.queuedMs, x.from))
		case !t.waits:
			v.ended(x, &t, e)
		}
		t.waits, t.delivers, t.held = false, false, true
	case EventTaskReleased:
		t.waits, t.held, t.queuedMs = true, false, e.Time
		x.change.New.Add(t.width, t.booked, 0)
	case EventTaskResumed: // as if it had not waited
		if t.held && x.present { // the next release has ended, this one was given up before
			x.change.New.Add(t.width, t.booked, 0)
		}
		t.held = false
		t.waits, t.queuedMs, t.assignedMs, t.length = false, e.QueuedMs, e.AssignedMs, t.booked
		if !x.present {
			x.change.Past.Add(t.width, t.booked, max(t.queuedMs, v.since))
			t.again = e.Index
		}
	case EventTaskDelivering: // it neither waits nor runs
		v.ended(x, &t, e)
		t.delivers = true
	case EventTaskRequeued:
		queued := t.queuedMs
		t.waits, t.queuedMs = true, e.Time
		if t.delivers {
			t.delivers = false
			if x.present {
				x.change.New.Add(t.width, t.booked, 0)
			}
			break
		}
		if e.End == EndFailed || e.End == EndTimedOut || e.End == EndStopped || e.End == EndOrphaned { // charged
			v.ended(x, &t, e)
			if x.present {
				x.change.New.Add(t.width, t.booked, 0)
			}
			break
		}
		x.change.Corrected = x.change.Corrected.Add(sched.Mul64(t.width, t.booked-t.length))
		switch {
		case x.present:
		case t.again == e.Index: // it counts as never having been there
			x.change.Past.Sub(t.width, t.booked, max(queued, v.since))
		default: // it is released again when its owner is back
			x.change.Gone.Add(t.width, t.booked, max(queued, v.since))
		}
	default:
		switch {
		case t.delivers, t.held:
		case !t.waits:
			v.ended(x, &t, e)
		case x.present:
			x.change.Gone.Add(t.width, t.booked, max(t.queuedMs, x.from))
		}
		delete(v.tasks, key)
		return
	}
	v.tasks[key] = t
}

// ended corrects a length: what ran before the policy began does not count.
func (v *mirror) ended(x *mirrorSite, t *mirrorTask, e *Event) {
	length := int64(0)
	if e.RunMs > 0 {
		length = max(0, e.StartedMs+e.RunMs-max(e.StartedMs, v.since))
	}
	by := sched.Mul64(t.width, length-t.length)
	x.change.Corrected = x.change.Corrected.Add(by)
}

func (v *mirror) away(x *mirrorSite, now int64) {
	for key, t := range v.tasks {
		if key.job.Site == x.name && t.waits {
			x.change.Gone.Add(t.width, t.booked, max(t.queuedMs, x.from))
			x.waited += t.width * (now - max(t.queuedMs, x.from))
		}
	}
	x.present, x.from = false, now
}

func (v *mirror) back(x *mirrorSite, now int64) {
	x.present, x.from = true, now
	for key, t := range v.tasks {
		if key.job.Site == x.name && t.waits {
			x.change.New.Add(t.width, t.booked, 0)
		}
	}
}

// change begins again if the policy is a different one.
func (v *mirror) change(now int64) {
	policy := v.s.params.Policy
	if policy != v.policy && (sched.IsProjected(policy) || v.policy != "") {
		v.begin(policy, now)
	}
}

// begin makes all begin equal, if the policy uses projected waits.
func (v *mirror) begin(policy string, now int64) {
	v.policy, v.queues, v.since = "", nil, 0
	if sched.IsProjected(policy) {
		v.policy, v.since = policy, now
		for range 1 << len(v.order) {
			v.queues = append(v.queues, schedtest.NewQueue(leastCores, now))
		}
	}
	for _, x := range v.order {
		*x = mirrorSite{name: x.name, present: x.present, from: now}
	}
	for key, t := range v.tasks {
		t.booked = v.s.jobs.Get(v.s.findJob(key.job)).booked
		x := v.sites[key.job.Site]
		switch {
		case t.delivers, t.held:
		case !t.waits:
			t.length = max(1, t.booked-(now-t.assignedMs))
			x.change.New.Add(t.width, t.length, 0)
		case x.present:
			x.change.New.Add(t.width, t.booked, 0)
		}
		v.tasks[key] = t
	}
}

// compare checks each site's wait, its fair share, and what everything will go on waiting.
func (v *mirror) compare() {
	account, now := v.s.accounts(), v.s.time
	value := make([]*big.Int, len(v.queues))
	for set, q := range v.queues {
		if value[set] = q.Total(); value[set].Cmp(schedtest.Big(sched.MaxWait)) > 0 {
			value[set] = schedtest.Big(sched.MaxWait)
		}
	}
	all, units := new(big.Int), int64(0)
	waited := map[string]int64{}
	for key, t := range v.tasks {
		if x := v.sites[key.job.Site]; t.waits && x.present {
			waited[x.name] += t.width * (now - max(t.queuedMs, x.from))
			units += t.width
		}
	}
	for _, x := range v.order {
		waited[x.name] += x.waited
		all.Add(all, big.NewInt(waited[x.name]))
	}
	ahead := new(big.Int).Sub(value[len(value)-1], all)
	for i, x := range v.order {
		p := account(v.s.byName[x.name]).Projection
		if !x.present {
			p.Released = sched.Mul64(p.Units, now) // they do not wait now
		}
		if got := schedtest.Big(p.At(now)); got.Cmp(big.NewInt(waited[x.name])) != 0 {
			v.t.Fatalf("%s waited %v, by events %d", x.name, got, waited[x.name])
		}
		got := new(big.Rat).SetFrac(schedtest.Big(p.Fair), big.NewInt(p.Scale))
		if want := v.fair(value, i); got.Cmp(want) != 0 {
			v.t.Fatalf("entry %d, %s: fair share of %s is %v, by events %v", v.s.index, v.policy, x.name, got, want)
		}
		if got := schedtest.Big(p.Ahead); got.Cmp(ahead) != 0 || p.Queued != units {
			v.t.Fatalf("%d units wait %v more, by events %d, %v", p.Queued, got, units, ahead)
		}
	}
}

// fair returns a site's share by the policy's definition.
func (v *mirror) fair(value []*big.Int, site int) *big.Rat {
	me, grand := 1<<site, len(value)-1
	gain := func(set int) *big.Rat { return new(big.Rat).SetInt(new(big.Int).Sub(value[set|me], value[set])) }
	switch v.policy {
	case sched.Alone:
		return gain(0)
	case sched.CE:
		sum := gain(0)
		return sum.Add(sum, gain(grand&^me)).Mul(sum, big.NewRat(1, 2))
	}
	sum, n := new(big.Rat), int64(len(v.order))
	for set := range value {
		if s := int64(bits.OnesCount(uint(set))); set&me == 0 {
			weight := new(big.Rat).SetFrac(
				big.NewInt(1), new(big.Int).Mul(big.NewInt(n), new(big.Int).Binomial(n-1, s)),
			)
			sum.Add(sum, weight.Mul(weight, gain(set)))
		}
	}
	return sum
}
