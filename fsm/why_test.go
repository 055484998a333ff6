package fsm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestWhyAgrees compares what Why says with what Apply does, over random histories of up to four sites under all
// policies.
func TestWhyAgrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.why,
			"submit":   m.submit,
			"submit2":  m.submit,
			"submit3":  m.submit,
			"offer":    m.offer,
			"offer2":   m.offer,
			"started":  m.started,
			"complete": m.complete,
			"decline":  m.decline,
			"cancel":   m.cancel,
			"usage":    m.usage,
			"lost":     m.lost,
			"register": m.register,
			"leave":    m.leave,
			"suspect":  m.suspect,
			"params":   m.params,
			"tick":     m.tick,
		})
	})
}

func (m *model) why(t *rapid.T) {
	m.t, m.w.t = t, t
	s := m.w.s
	said := map[uint64]WhyView{}
	before := s.Hash()
	for seq, j := range s.jobs.All() {
		v, ok := s.Why(s.idOf(j))
		if !ok || (v.Waiting > 0) != (j.waiting() > 0 && s.sites[j.owner].present()) {
			t.Fatalf("job %d: %+v", seq, v)
		}
		if v.Waiting > 0 {
			m.checkWhy(t, seq, &v)
			said[seq] = v
		}
	}
	if s.Hash() != before {
		t.Fatal("a question changed the state")
	}
	if s.waits == nil { // otherwise an end corrects an estimate, and so the order
		m.freeOne(t, said)
	}
	m.askFirst(t)
}

// checkWhy compares one answer with a naive look at all jobs and machines.
func (m *model) checkWhy(t *rapid.T, seq uint64, v *WhyView) {
	s := m.w.s
	j := s.jobs.Get(seq)
	for _, x := range v.Sites {
		if want := s.naiveHindrance(j, s.byName[x.Site]); x.Why != want {
			t.Fatalf("job %d at %s: %s, want %s", seq, x.Site, x.Why, want)
		}
		switch {
		case x.Why == HinderedFull && (x.Short == command.Resources{} || x.First == command.JobID{}):
			t.Fatalf("job %d at %s is full, short of %v, first is %v", seq, x.Site, x.Short, x.First)
		case x.Why == HinderedFree || x.Why == HinderedTurn:
			t.Fatalf("job %d waits, %s has room: %+v", seq, x.Site, x)
		}
	}
	if able := s.naiveAble(j); (v.Unfit == "") != able {
		t.Fatalf("job %d: some site could run it: %v, and %q", seq, able, v.Unfit)
	}
	own, others := s.naiveAhead(seq, j)
	if v.Ahead.Own != own || v.Ahead.Others != others || !v.Ahead.Exact {
		t.Fatalf("job %d: %+v, want %d own and %d others ahead", seq, v.Ahead, own, others)
	}
	if i := slices.IndexFunc(v.Turns, func(x TurnView) bool { return x.Site == v.Job.Site }); i != v.Ahead.Sites ||
		v.Turns[i].Place != i+1 {
		t.Fatalf("job %d: own turn at %d, %d sites ahead", seq, i, v.Ahead.Sites)
	}
}

// naiveAble reports whether some present site could run a task of the job if its machines were empty.
func (s *State) naiveAble(j *job) bool {
	for _, x := range s.sites {
		for _, m := range x.machines {
			if x.present() && j.class.Allows(x.name) && oracleRuns[m.runs][j.class.Image] &&
				oracleSelects(m, j.class.Selectors) && j.class.Need.FitsIn(m.whole) {
				return true
			}
		}
	}
	return false
}

func (s *State) naiveHindrance(j *job, x *site) Hindrance {
	var kind, labelled, whole, room, unheld bool
	offered := 0
	for _, m := range x.machines {
		offered++
		if !m.runs.Takes(j.class.Image) {
			continue
		}
		kind = true
		if !oracleSelects(m, j.class.Selectors) {
			continue
		}
		labelled = true
		if !j.class.Need.FitsIn(m.whole) {
			continue
		}
		whole = true
		if j.class.Need.FitsIn(oracleRoom(m)) {
			room = true
			unheld = unheld || m.held == 0 || s.jobs.Get(m.held) == j
		}
	}
	for _, c := range []struct {
		holds bool
		h     Hindrance
	}{
		{x.state == Left, HinderedLeft},
		{!j.class.Allows(x.name), HinderedRule},
		{x.state == SiteGone, HinderedLost},
		{offered == 0, HinderedClosed},
		{!kind, HinderedKind},
		{!labelled, HinderedLabels},
		{!whole, HinderedShape},
		{x.state == Suspected, HinderedSuspect},
		{j.isBarred(x), HinderedDeclined},
		{!room, HinderedFull},
		{!unheld, HinderedReserved},
	} {
		if c.holds {
			return c.h
		}
	}
	return HinderedFree
}

// naiveAhead counts what goes before a job, job by job.
func (s *State) naiveAhead(seq uint64, j *job) (own, others uint64) {
	oldest := map[int32]head{}
	tasks := map[int32]uint64{}
	reach := s.reachOf(&j.class.Shape)
	for other, o := range s.jobs.All() {
		x := s.sites[o.owner]
		if o.waiting() == 0 || !x.present() || o.class != j.class && !reach.meets(&o.class.Shape) {
			continue
		}
		tasks[o.owner] += uint64(o.waiting())
		if o.owner == j.owner && (o.order > j.order || o.order == j.order && other < seq) {
			own += uint64(o.waiting())
		}
		first := s.headOf(x, o.class)
		h := head{ms: s.jobs.Get(first).headMs(), seq: first}
		if old, ok := oldest[o.owner]; !ok || h.older(old) {
			oldest[o.owner] = h
		}
	}
	now := s.quanta(s.time)
	account := s.accounts()
	mine := s.policy.Rank(account(s.sites[j.owner]), now)
	for id, n := range tasks {
		c := s.policy.Rank(account(s.sites[id]), now).Compare(mine)
		if id != j.owner && (c > 0 || c == 0 && oldest[id].older(oldest[j.owner])) {
			others += n
		}
	}
	return own, others
}

// freeOne ends one attempt that never started without a charge, so that room appears and no account
// changes. Then the job that goes first there gets the room, and no job gets a task at a site that was said
// to be out of the question.
func (m *model) freeOne(t *rapid.T, said map[uint64]WhyView) {
	s := m.w.s
	var slots []uint64
	for slot, a := range s.attempts.All() {
		if a.phase == phaseAssigned && a.startedMs < 0 && a.machine.offered && s.sites[a.site].state == Alive {
			slots = append(slots, slot)
		}
	}
	if len(slots) == 0 || len(said) == 0 {
		return
	}
	a := s.attempts.Get(rapid.SampledFrom(slots).Draw(t, "attempt"))
	j, at := s.jobs.Get(a.seq), s.sites[a.site].name
	room := a.machine.exposed.Minus(a.machine.used).Plus(j.class.Need)
	if m := a.machine; m.slots > 0 && m.tasks > m.slots { // its slots became fewer
		room = command.Resources{}
	}
	want := map[uint64]uint64{} // what goes first, by the job that is asked about
	for _, seq := range slices.Sorted(maps.Keys(said)) {
		w := s.jobs.Get(seq)
		q := inquiry{
			s: &s.views, owner: s.sites[w.owner], shape: &w.class.Shape, job: w, seq: seq, order: w.order,
		}
		q.answer(&WhyView{})
		if a.machine.mayTake(&w.class.Shape, room) {
			want[seq] = q.firstAt(a.machine, room)
		}
	}
	end := command.Ended{
		AttemptRef: command.AttemptRef{Job: s.idOf(j), Task: a.task, Attempt: a.attempt, Token: a.token},
		Outcome:    command.Succeeded,
	}
	after := m.copyWith(t, at, &command.Complete{Attempts: []command.Ended{end}})
	took := map[uint64]bool{}
	for _, n := range after.attempts.All() {
		if n.token != after.index {
			continue
		}
		took[n.seq] = true
		v := said[n.seq]
		i := slices.IndexFunc(v.Sites, func(x SiteWhy) bool { return x.Site == after.sites[n.site].name })
		if i < 0 || v.Sites[i].Site != at || v.Sites[i].Why != HinderedFull && v.Sites[i].Why != HinderedReserved {
			t.Fatalf("job %d got a task at %s: %+v", n.seq, after.sites[n.site].name, v.Sites)
		}
	}
	for asked, first := range want {
		if first != 0 && !took[first] {
			t.Fatalf("asked for job %d: job %d goes first at %s/%s with %v, but %v got tasks", asked, first, at, a.machine.name, room, took)
		}
	}
}

// askFirst compares the answer for a hypothetical job with what a submission of the same job does.
func (m *model) askFirst(t *rapid.T) {
	s := m.w.s
	site := m.site()
	job := command.JobSpec{
		Num: m.w.num[site] + 1, Count: uint32(rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "asked")), MaxAttempts: 1,
		Need: command.Resources{
			MilliCPU: rapid.Int64Range(1, 5).Draw(t, "cores") * 1000, MemMiB: 0,
			GPU: rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "gpus"),
		},
		Priority: int32(rapid.IntRange(0, 1).Draw(t, "priority")),
		Image:    rapid.IntRange(0, 3).Draw(t, "image") == 0, Selectors: m.drawSelectors(),
	}
	if rapid.IntRange(0, 3).Draw(t, "where") == 0 {
		job.Only = []string{m.site()}
	}
	v, ok := s.WhySpec(site, &job)
	if !ok {
		if s.byName[site].present() {
			t.Fatalf("%s is present", site)
		}
		return
	}
	var slots uint64
	free := map[string]bool{}
	for _, x := range v.Sites {
		if x.Why == HinderedFree {
			free[x.Site], slots = true, slots+x.Slots
		}
	}
	after := m.copyWith(t, site, &command.Submit{Jobs: []command.JobSpec{job}})
	got := uint64(0)
	for _, a := range after.attempts.All() {
		if x := after.sites[a.site].name; a.token == after.index {
			if a.seq != s.nextSeq || !free[x] {
				t.Fatalf("job %d started at %s, free were %v", a.seq, x, free)
			}
			got++
		}
	}
	if want := min(slots, uint64(job.Count)); got != want {
		t.Fatalf("%d of %d tasks started, it was said that %d fit: %+v", got, job.Count, slots, v.Sites)
	}
}

// copyWith applies a command of a site to a copy of the state, at the same log time.
func (m *model) copyWith(t *rapid.T, site string, b command.Body) *State {
	c, err := reborn(m.w.s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command.Command{
		ID: command.ID{Site: site, Incarnation: m.w.inc[site], Seq: m.w.seq[site] + 1}, Ack: m.w.seq[site],
		Body: b,
	}
	res, err := c.Apply(&command.Batch{Term: m.w.term, Elapsed: m.w.base, Commands: []command.Command{cmd}})
	if err != nil || res[0].Code != command.OK {
		t.Fatalf("%T of %s: %v %v", b, site, err, res)
	}
	return c
}

// TestWhyTells shows each hindrance, and who goes first, once.
func TestWhyTells(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c", "d", "e", "f", "g", "h")
	wide := w.job("a", 2)
	wide.Need = command.Resources{MilliCPU: 4000, MemMiB: 512}
	wide.Not = []string{"h"}
	w.must("b", w.offering("b", 6)) // gets busy
	w.must("c", w.offering("c", 2)) // too small
	w.must("d", w.offering("d"))    // closed
	w.must("g", &command.Offer{
		Version: 1,
		Machines: []command.Machine{{
			Name: "m", Resources: command.Resources{MilliCPU: 9000, MemMiB: 999}, Runs: command.RunsImages,
		}},
	})
	w.submit("c", w.job("c", 3)) // takes 3 of b and c
	w.must("c", &command.Cancel{Job: command.JobID{Site: "c", Num: 1}, Task: 0})
	w.must("a", &command.SiteLost{Site: "e", Incarnation: w.inc["e"], Term: 1})
	w.must("f", &command.Leave{})
	w.submit("b", w.job("b", 8))
	w.at(60_000)
	w.must("c", &command.Usage{
		Batch: 1, Rows: []command.UsageRow{{Job: 9, Need: command.Resources{MilliCPU: 1000}, RunMs: 1000}},
	})
	w.submit("a", w.job("a", 5), wide)
	v, ok := w.s.Why(command.JobID{Site: "a", Num: 1})
	if !ok {
		t.Fatal("the job is there")
	}
	var out strings.Builder
	for _, x := range v.Sites {
		fmt.Fprintf(&out, "%s %s machines=%d short=%s first=%s\n", x.Site, x.Why, x.Machines, x.Short, x.First)
	}
	fmt.Fprintf(&out, "ahead %+v\n", v.Ahead)
	for _, x := range v.Turns {
		fmt.Fprintf(&out, "%d %s waiting %d since %d priority %s tied %v\n", x.Place, x.Site, x.Waiting, x.OldestMs, x.Priority, x.Tied)
	}
	const want = `a closed machines=0 short=0 cores first=.0
b full machines=1 short=4 cores first=b.1
c shape machines=0 short=2 cores first=.0
d closed machines=0 short=0 cores first=.0
e lost machines=0 short=0 cores first=.0
f left machines=0 short=0 cores first=.0
g kind machines=0 short=0 cores first=.0
h rule machines=0 short=0 cores first=.0
ahead {Own:5 Others:3 MilliCPU:8000 Sites:1 Exact:true}
1 b waiting 3 since 0 priority 0 tied true
2 a waiting 7 since 60000 priority 0 tied false
`
	if got := out.String(); got != want {
		t.Fatalf("%s", got)
	}
}

// TestWhyUnknown asks for an unknown job and an unknown site.
func TestWhyUnknown(t *testing.T) {
	w := newWorld(t, params(), "a")
	if _, ok := w.s.Why(command.JobID{Site: "a", Num: 1}); ok {
		t.Error("an unknown job")
	}
	job := w.job("a", 1)
	if _, ok := w.s.WhySpec("zz", &job); ok {
		t.Error("an unknown site")
	}
	if v, ok := w.s.WhySpec("a", &job); !ok || v.Refused != command.OK || len(v.Turns) != 1 ||
		v.Ahead != (AheadView{Exact: true}) {
		t.Errorf("%v %+v", ok, v)
	}
}

// TestWhyBySample: with more jobs than are examined the count is approximate, and says so.
func TestWhyBySample(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.must("a", w.offering("a", 1))
	jobs := make([]command.JobSpec, 0, 4096)
	total := uint64(0)
	for i := range 4 * 4096 {
		j := w.job("a", uint32(1+i%3))
		j.Priority = int32(i % 2)
		total += uint64(j.Count)
		if jobs = append(jobs, j); len(jobs) == cap(jobs) {
			w.submit("a", jobs...)
			jobs = jobs[:0]
		}
	}
	last := w.job("a", 1)
	w.submit("a", last)
	v, _ := w.s.Why(command.JobID{Site: "a", Num: last.Num})
	if d := int64(v.Ahead.Own) - int64(total); v.Ahead.Exact || d < -int64(total)/20 || d > int64(total)/20 {
		t.Fatalf("%+v, want about %d", v.Ahead, total)
	}
}

// TestWhyByPolicy: the answer has each policy's own reason.
func TestWhyByPolicy(t *testing.T) {
	for _, policy := range sched.Names() {
		p := params()
		p.Policy = policy
		w := newWorld(t, p, "a", "b")
		w.must("b", w.offering("b", 2))
		w.at(1000)
		w.must("b", &command.Usage{
			Batch: 1,
			Rows:  []command.UsageRow{{Job: 1, Need: command.Resources{MilliCPU: 3000}, AgoMs: 100, RunMs: 500}},
		})
		w.submit("a", w.job("a", 9))
		v, _ := w.s.Why(command.JobID{Site: "a", Num: 1})
		x := v.Turns[0]
		switch policy {
		case sched.FairShare:
			if x.Usage != "0" || x.Share != 0 {
				t.Errorf("%s: %+v", policy, x)
			}
		case sched.RoundRobin:
			if !x.Chosen || x.StartsAgo != 0 {
				t.Errorf("%s: %+v", policy, x)
			}
		default:
			if x.Priority == "" || x.Usage != "" || x.Chosen {
				t.Errorf("%s: %+v", policy, x)
			}
		}
	}
}

// A machine that is overdrawn in one part, since its offer shrank, was said to have room for tasks that do not need
// that part; match gives it none.
func TestWhyCountsNoSlotsOnAnOverdrawnMachine(t *testing.T) {
	q := inquiry{shape: &command.Shape{Need: command.Resources{MilliCPU: 1000}}}
	for room, want := range map[command.Resources]uint64{
		{MilliCPU: 2500}:          2,
		{MilliCPU: 2500, GPU: -1}: 0,
		{MilliCPU: 500}:           0,
	} {
		if got := q.slots(&machine{exposed: room}); got != want || (got > 0) != q.shape.Need.FitsIn(room) {
			t.Errorf("room %+v has %d slots, want %d", room, got, want)
		}
	}
}
