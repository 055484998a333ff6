package fsm

import (
	"io"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/sched"
)

// Restore reads a snapshot. What no State wrote it refuses with ErrBadSnapshot: it never panics, and the
// memory it takes grows with what it reads. All derived data is rebuilt.
func Restore(in io.Reader) (*State, error) { return restore(in, realBounds()) }

func restore(in io.Reader, b bounds) (*State, error) {
	r := newSnapReader(in)
	s := newState(b)
	for i := range len(snapshotMagic) {
		r.check(r.byte() == snapshotMagic[i], "not a snapshot in this format: run the version that wrote it")
	}
	r.scalars(s)
	r.roster(s)
	r.sites(s)
	r.jobs(s)
	r.reservations(s)
	r.leftovers(s)
	r.waits(s)
	r.freshAgain(s)
	r.finish()
	if r.err != nil {
		return nil, r.err
	}
	s.plan()
	return s, nil
}

func (r *snapReader) scalars(s *State) {
	if s.version = r.u32("version"); s.version > s.bounds.version {
		r.fail("%w", s.bounds.tooNew(s.version)) // the rest may be anything
		return
	}
	s.index, s.term, s.founded, s.seed = r.uint(), r.uint(), r.uint(), r.uint()
	s.termBase, s.time = r.int(), r.within(0, sched.MaxNow, "log time")
	s.createdMs = r.within(0, command.MaxUnixMs, "date")
	s.federation = r.id()
	s.leader = r.text(63, "leader")
	r.check(s.leader == "" || command.ValidSite(s.leader) && s.founded > 0, "a leader that can be none")
	s.decisions, s.nextSeq = r.uint(), r.uint()
	s.nextReserve = r.within(0, s.bounds.maxNextReserve(), "log time")
	s.heldUntil = r.within(0, sched.MaxNow, "hold")
	p := &s.params
	r.params(p)
	r.check((s.founded > 0) == (s.version > 0), "a version without genesis, or genesis without one")
	r.check(s.founded <= s.index && s.nextSeq > 0 && s.nextSeq < 1<<62 && s.termBase <= sched.MaxNow,
		"numbers contradict each other")
	r.long(s)
	if s.founded == 0 || r.err != nil {
		r.check(r.err != nil || *p == command.Params{} && !s.unfinished(), "parameters or work before genesis")
		return
	}
	if err := p.Validate(); err != nil {
		r.fail("parameters: %v", err)
		return
	}
	s.policy, _ = sched.New(p.Policy, p.Running)
}

func (r *snapReader) params(p *command.Params) {
	p.Policy = r.text(64, "policy")
	p.Running = sched.Mode(r.upTo(uint64(sched.Completed), "mode"))
	p.PreferOwn, p.FixedOrder, p.ClaimedHome = r.bool(), r.bool(), r.bool()
	p.ReserveAfterMs, p.RetainMs, p.RetainJobs, p.DepartureMs = r.int(), r.int(), r.int(), r.int()
	p.RateCPU, p.RateMem, p.RateGPU, p.QuantumMs = r.int(), r.int(), r.int(), r.int()
	p.LeaseMs, p.MarginMs = r.int(), r.int()
}

func (r *snapReader) sites(s *State) {
	n := r.upTo(uint64(s.bounds.members), "sites")
	r.check(n == 0 || s.founded > 0, "sites before genesis")
	for range n {
		if r.err != nil {
			return
		}
		name := r.text(63, "site")
		if r.err == nil && (!command.ValidSite(name) || s.byName[name] != nil) {
			r.fail("site %.80q is no name, or twice here", name)
		}
		if r.err == nil {
			r.site(s, s.addSite(name), int32(n))
		}
	}
	s.indexSites()
	for _, x := range s.sites {
		x.counted = x.present()
		for _, c := range x.row {
			x.account.Used.Plus(c.sums)
			if int(c.executor) < len(s.sites) {
				s.sites[c.executor].account.Gave.Plus(c.sums)
			}
		}
	}
}

func (r *snapReader) site(s *State, x *site, members int32) {
	x.node = r.id()
	r.check(s.byNode[x.node] == nil, "a data directory of two sites")
	s.byNode[x.node] = x
	for range r.upTo(uint64(s.bounds.boots), "boots") {
		x.boots = append(x.boots, r.id())
	}
	x.http, x.peer = r.text(command.MaxAddress, "address"), r.text(command.MaxAddress, "address")
	x.gossip = r.text(command.MaxAddress, "address")
	x.maxVersion, x.state = r.u32("version"), SiteState(r.upTo(uint64(Left), "site state"))
	x.lostMs, x.gone = r.ms(0, s.time), r.bool()
	s.setMissed(x, r.bool())
	r.check(!x.gone || x.state == Left, "a site that did not leave is gone")
	x.closed = command.Closure(r.upTo(uint64(command.LastClosure), "closure"))
	if s.version >= command.AheadVersion {
		x.idleMs = r.within(0, command.MaxAheadMs, "idle time")
	}
	x.incarnation, x.floor = r.uint(), r.uint()
	for range r.upTo(s.bounds.window, "results") {
		a := answer{seq: r.uint(), result: r.result(s)}
		last := x.floor
		if n := len(x.window); n > 0 {
			last = x.window[n-1].seq
		}
		r.check(a.seq > last && a.seq-x.floor <= s.bounds.window, "results out of order")
		x.window = append(x.window, a)
	}
	x.registered = r.result(s)
	x.settled, x.maxNum = r.uint(), r.uint()
	r.retired(s, x)
	x.usageBatch, x.lastStart, x.offerVersion, x.offers = r.uint(), r.uint(), r.uint(), r.uint()
	x.account.LastStart, x.changed, x.taken = x.lastStart, s.index, s.index
	x.deliveryAt, x.settledAt, x.unwanted = s.index, s.index, s.index
	x.againAt, x.againLeft = s.index, s.index
	r.check(len(x.boots) > 0 && x.incarnation > 0 && x.lastStart <= s.decisions, "a site that never registered")
	r.machines(s, x)
	r.row(x, members)
}

func (r *snapReader) result(s *State) command.Result {
	v := command.Result{Code: command.Code(r.upTo(uint64(command.LastCode), "code")), Index: r.upTo(s.index, "entry")}
	for range r.upTo(command.MaxJobsPerSubmit, "codes") {
		v.Jobs = append(v.Jobs, command.Code(r.upTo(uint64(command.LastCode), "code")))
	}
	v.Incarnation, v.NextJob, v.NextUsage, v.Motion = r.uint(), r.uint(), r.uint(), r.uint()
	return v
}

func (r *snapReader) retired(s *State, x *site) {
	last := uint64(0)
	for range r.upTo(s.bounds.mostNumbers(), "retired ranges") {
		v := store.Span{From: r.uint(), To: r.uint()}
		n := len(x.retired)
		inOrder := n == 0 || v.From > last && v.From-last > 1
		r.check(v.From <= v.To && v.From > 0 && inOrder && v.From >= x.settled && v.To <= x.maxNum,
			"retired numbers out of order")
		if r.err != nil {
			return
		}
		last = v.To
		x.retired = append(x.retired, v)
	}
}

func (r *snapReader) machines(s *State, x *site) {
	x.capacity, x.home = r.res(), r.res()
	x.homeRan.Hi, x.homeRan.Lo = r.int(), r.uint()
	for range r.upTo(command.MaxMachines, "machines") {
		m := &machine{
			site: x, name: r.text(command.MaxMachineName, "machine"), exposed: r.res(), whole: r.res(), offered: true,
			runs: command.Runs(r.upTo(uint64(command.RunsBoth), "runs")),
		}
		r.rest(s, m)
		n := len(x.machines)
		if r.err == nil && (command.CheckMachineName(m.name) != nil || n > 0 && x.machines[n-1].name >= m.name) {
			r.fail("machine %.140q is no name, or out of order", m.name)
		}
		if r.err != nil {
			return
		}
		m.slots = r.within(0, command.MaxSlots, "slots")
		s.relabel(m, r.labelled())
		r.check(m.whole == m.exposed.Greater(m.whole) && command.CheckResources("", m.whole) == nil,
			"a machine is less than what it exposes")
		x.exposed, x.reach = x.exposed.Plus(m.exposed), x.reach.Plus(m.exposed)
		x.most, x.widest = x.most.Greater(m.whole), x.widest.Greater(m.exposed)
		x.machines = append(x.machines, m)
	}
	if err := command.CheckResources("all machines' ", x.exposed); err != nil {
		r.fail("%v", err)
	}
	s.setShare(x)
	s.weighSite(x)
}

func (r *snapReader) row(x *site, members int32) {
	last, own := int32(-1), sched.Int128{}
	for range r.upTo(MaxMembers, "cells") {
		c := cell{executor: int32(r.upTo(MaxMembers, "executor")), tasks: r.uint()}
		for _, v := range []*sched.Int128{&c.sums.A, &c.sums.B, &c.sums.R} {
			v.Hi, v.Lo = r.int(), r.uint()
		}
		r.check(c.executor > last && c.executor < members, "cells out of order")
		if r.err != nil {
			return
		}
		last = c.executor
		x.row = append(x.row, c)
		if c.executor == x.id {
			own = c.sums.A
		}
	}
	r.check(x.homeRan.Hi >= 0 && x.homeRan.Cmp(own) <= 0, "a site ran more at home than it ran for itself")
}

func (r *snapReader) jobs(s *State) {
	seq := uint64(0)
	for range r.uint() { // quotas checks the number, and d > 0 bounds what a wrong one costs
		d := r.upTo(s.nextSeq, "seq")
		r.check(d > 0 && d < s.nextSeq-seq, "jobs out of order")
		if r.err != nil {
			return
		}
		seq += d
		r.job(s, seq)
	}
	r.quotas(s)
}

func (r *snapReader) job(s *State, seq uint64) {
	var j job
	owner := r.upTo(MaxMembers, "owner")
	j.owner, j.num, j.entry = int32(owner), r.uint(), r.upTo(s.index, "entry")
	j.timeoutMs, j.createdMs = r.within(0, command.MaxTimeoutMs, "timeout"), r.within(0, command.MaxUnixMs, "date")
	j.queuedMs, j.startedMs, j.endedMs = r.ms(0, s.time), r.ms(-1, s.time), r.ms(-1, s.time)
	j.order = int32(r.within(command.MinOrder, command.MaxPriority, "order"))
	j.count, j.next = uint32(r.upTo(command.MaxCount, "count")), uint32(r.upTo(command.MaxCount, "next"))
	j.maxAttempts = uint32(r.upTo(command.MaxAttempts, "attempts"))
	loss := r.upTo(markGated|uint64(command.Never)<<1|1, "on loss")
	j.onLoss, j.delivers, j.gated = command.OnLoss(loss&^markGated>>1), loss&1 != 0, loss&markGated != 0
	r.check(j.onLoss <= command.Never && (!j.gated || s.version >= command.GatesVersion && j.next == j.count),
		"a job that no version in force has")
	j.class, j.payload = r.class(s), r.payload(s)
	r.check(j.count > 0 && j.next <= j.count && j.maxAttempts > 0 && owner < uint64(len(s.sites)),
		"job's numbers contradict each other")
	if r.err != nil {
		return
	}
	x := s.sites[owner]
	r.check(j.num > 0 && j.num <= x.maxNum && x.nums[j.num] == 0 && !x.retired.Has(j.num),
		"job's number is not its own")
	if r.err != nil {
		return
	}
	x.nums[j.num] = seq
	p := s.jobs.Put(seq, s.epoch)
	*p = j
	if r.bool() {
		p.tasks = &taskSet{epoch: s.epoch}
		r.tasks(s, seq, p)
	}
	r.index(s, seq, p)
}

// index adds a job to the derived structures.
func (r *snapReader) index(s *State, seq uint64, j *job) {
	r.check(j.tasks != nil || j.next == 0 || j.gated, "assigned tasks without a record")
	if r.err != nil {
		return
	}
	done := j.tasks != nil && j.tasks.endedTasks() == j.count
	if r.check(done == j.over(), "a job's end contradicts its tasks"); r.err != nil {
		return
	}
	x, n := s.sites[j.owner], j.waiting()
	x.held += uint64(j.heldTasks())
	if n > 0 || j.heldTasks() > 0 || j.tasks.delivering().Len() > 0 {
		r.check(!x.gone || r.hasChore(s, x.id), "a job waits whose owner's departure is over")
	}
	if n > 0 && r.err == nil {
		s.addWaiting(seq, j, n)
	}
	s.countUse(seq, j)
}

func (r *snapReader) class(s *State) *class {
	no := r.upTo(uint64(len(r.classes)), "shape")
	if r.err == nil && no == uint64(len(r.classes)) {
		h := command.Shape{Need: r.res()}
		marks := r.classMarks(s)
		h.Image, h.Only, h.Not = marks&1 != 0, r.names(), r.names()
		h.Selectors = r.selectors()
		if r.err != nil {
			return nil
		}
		r.check(s.findClass(&h) == nil && h.Need.MilliCPU > 0, "a shape twice, or with no cpu")
		c := s.holdClass(&h)
		r.classes = append(r.classes, c)
		r.noteMarks(s, c, marks)
		return c
	}
	if r.err != nil {
		return nil
	}
	r.classes[no].refs++
	return r.classes[no]
}

func (r *snapReader) selectors() []string {
	var out []string
	for range r.upTo(command.MaxSelectors, "selectors") {
		out = append(out, r.text(command.MaxSelectorText, "selector"))
	}
	if err := command.CheckSelectors(out); r.err == nil && err != nil {
		r.fail("%v", err)
	}
	return out
}

// labelled reads a machine's labels: in full where they are first used, otherwise their number.
func (r *snapReader) labelled() command.Labels {
	no := r.upTo(uint64(len(r.labels)), "labels")
	if r.err == nil && no == uint64(len(r.labels)) {
		l := command.Labels(r.text(command.MaxLabelText, "labels"))
		if err := l.Validate(); r.err == nil && err != nil {
			r.fail("%v", err)
		}
		r.check(!r.known[l], "labels twice")
		r.labels, r.known[l] = append(r.labels, l), true
	}
	if r.err != nil {
		return ""
	}
	return r.labels[no]
}

func (r *snapReader) payload(s *State) *payload {
	no := r.upTo(uint64(len(r.loads)), "payload")
	if r.err == nil && no == uint64(len(r.loads)) {
		p := s.holdPayload(r.blob(command.MaxPayload, "payload"))
		r.check(p.refs == 1, "a payload twice")
		r.loads = append(r.loads, p)
		return p
	}
	if r.err != nil {
		return nil
	}
	r.loads[no].refs++
	return r.loads[no]
}

func (r *snapReader) reservations(s *State) {
	for range r.upTo(uint64(s.jobs.Len()), "reservations") {
		seq, id := r.uint(), r.upTo(MaxMembers, "site")
		name := r.text(command.MaxMachineName, "machine")
		if r.err != nil {
			return
		}
		j := s.jobs.Get(seq)
		if j == nil || j.waiting() == 0 || !s.sites[j.owner].present() || s.isHeld(seq) || id >= uint64(len(s.sites)) {
			r.fail("a reservation for job %d that does not wait", seq)
			return
		}
		m := s.sites[id].machine(name)
		if m == nil || m.held != 0 {
			r.fail("a reservation of no such machine %.140q", name)
			return
		}
		s.hold(seq, m)
	}
}
