package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// WhyView says why a job waits, in facts, as of one entry: what match would do if room appeared now. Accounts
// change with every run, so the order is today's and not a promise.
type WhyView struct {
	Index  uint64
	TimeMs int64
	Params command.Params
	Policy string        // the one that applies: State.Policy
	Job    command.JobID // Num is 0 for a hypothetical job
	// Refused, if not OK, is why a submission would not be accepted; the other fields are as if it were.
	Refused command.Code
	// Unfit is why no site could run it, even with empty machines; "" if one could.
	Unfit string
	// Priority of the job, among those of its owner.
	Priority int32
	State    TaskState         // of the job
	Need     command.Resources // of one task
	// QueuedMs is the log time at which the job was queued, TimeMs for a hypothetical job.
	QueuedMs int64
	// Delivering counts its tasks whose outputs are on their way; DeliveringWhy says what they wait for, "" if none is.
	Delivering    uint32
	DeliveringWhy string
	Held          uint32 // tasks that its owner has not let go
	Waiting       uint32 // queued tasks; if there are none, the fields below are empty
	Ahead         AheadView
	// Turns are the sites with competing tasks, the one whose turn it is first; at most MaxTurns, and
	// always with the job's own site.
	Turns []TurnView
	// Claims are all sites with competing tasks, in the same order.
	Claims []Claim
	// PerUnit is how much a rank falls when a unit of its site starts; 0 except with the policies of
	// projected waits.
	PerUnit sched.Int128
	Sites   []SiteWhy // every site that ever registered, by name
}

// Claim is what an estimate needs to know of a competing site.
type Claim struct {
	Site     string
	Rank     sched.Rank
	Share    int64 // milli-cores that it contributes now
	Waiting  uint64
	MilliCPU int64 // needed by its competing tasks
}

// MaxTurns bounds the sites in a WhyView's Turns.
const MaxTurns = 20

// AheadView counts what goes first: waiting tasks that could run on a machine on which the job could run too.
type AheadView struct {
	Own      uint64 // tasks of the same site: of less nice, of higher priority, or earlier
	Others   uint64 // tasks of the sites whose turn comes first
	MilliCPU int64  // needed by both together
	Sites    int    // whose turn comes first
	Exact    bool   // if false, Own is estimated from a sample
}

// TurnView is one site's claim to the next machine. Decimals are in the units of sched.Standing and, for
// Usage, in weight·quantum.
type TurnView struct {
	Site                            string
	Place                           int    // from 1; 1 goes first
	Waiting                         uint64 // tasks that compete
	OldestMs                        int64  // log time at which the oldest of their heads was queued
	Contribution, Utility, Priority string
	Usage                           string // FAIRSHARE: what it used
	Share                           int64  // FAIRSHARE: milli-cores that it contributes now
	Chosen                          bool   // ROUND_ROBIN: whether it was ever chosen
	StartsAgo                       uint64 // ROUND_ROBIN, if Chosen: how many starts of the federation ago
	// Excess is for the policies of projected waits: about how long its tasks have waited and will wait
	// beyond their fair share, in cores·quanta.
	Excess  string
	Endless bool // with Excess: alone its tasks would wait forever, since it has no core
	Tied    bool // equal to the job's own site
}

// SiteWhy says why one site does not run the job.
type SiteWhy struct {
	Site     string
	Why      Hindrance
	Machines int               // that could run a task if they were empty
	InUse    int64             // milli-cores of those machines that the federation uses now
	Slots    uint64            // HinderedFree, HinderedTurn: tasks that fit now
	Machine  string            // the one that lacks least
	Short    command.Resources // HinderedFull, HinderedShape: what it lacks for one task
	AtMost   int64             // HinderedFull: if not 0, it runs that many tasks and may run no more
	InDoubt  bool              // HinderedSuspect: an attempt of the job's next task may still run there
	Lacks    string            // HinderedLabels: the selectors that Machine does not satisfy, and what it has instead
	// First is the job that takes the first room for such a task on Machine; with HinderedReserved, the
	// one for which Machine is reserved.
	First command.JobID
	Near  string // HinderedUnknown: the site with the most similar name, "" if none is similar
}

// Hindrance is the reason of a SiteWhy.
type Hindrance uint8

// The hindrances; if several apply, the last one counts.
const (
	HinderedFree     Hindrance = iota // nothing: a task starts with the next entry
	HinderedTurn                      // there is room, but others go first
	HinderedFull                      // machines that could run it are busy
	HinderedReserved                  // there is room, but it is reserved for another job
	HinderedDeclined                  // it declined the tasks, until its next offer
	HinderedSuspect                   // its offers are suspended: it does not answer
	HinderedShape                     // no machine would fit a task, even empty
	HinderedLabels                    // no machine has the labels that its selectors want
	HinderedNetwork                   // it gives others' tasks no network, and the job needs one
	HinderedFiles                     // it gives the job's tasks less room for files than they may need
	HinderedKind                      // its machines run the other kind of task
	HinderedClosed                    // it offers no machine
	HinderedLost                      // its lease ran out
	HinderedRule                      // sites.only or sites.not
	HinderedLeft                      // it left the federation
	HinderedUnknown                   // sites.only names it, and there is no site of that name
)

var hindranceNames = [...]string{
	"free", "turn", "full", "reserved", "declined", "suspect", "shape", "labels", "network", "files", "kind", "closed", "lost", "rule", "left", "unknown",
}

// String returns the hindrance's name in the API.
func (h Hindrance) String() string {
	if int(h) < len(hindranceNames) {
		return hindranceNames[h]
	}
	return "unknown"
}

// Why returns why a job waits; false if there is no such job. It examines classes, lanes and machines, and a
// bounded sample of jobs.
func (s *views) Why(id command.JobID) (WhyView, bool) {
	seq := s.findJob(id)
	if seq == 0 {
		return WhyView{}, false
	}
	j := s.jobs.Get(seq)
	c := s.counts(j)
	v := s.whyHead(id, j.class.Need, c[Queued])
	v.QueuedMs, v.Held = j.queuedMs, c[Held]
	v.Priority, _ = command.SplitOrder(j.order)
	v.Delivering, v.DeliveringWhy = uint32(j.tasks.delivering().Len()), s.jobDeliveringWhy(j)
	if v.State = c.JobState(); c[Queued] > 0 {
		q := inquiry{s: s, owner: s.sites[j.owner], shape: &j.class.Shape, job: j, seq: seq, order: j.order}
		q.answer(&v)
	}
	return v, true
}

// WhySpec returns what Why would return if a site submitted the job now; false if there is no such site, or it
// is not present. It changes nothing.
func (s *views) WhySpec(site string, spec *command.JobSpec) (WhyView, bool) {
	x := s.byName[site]
	if x == nil || !x.present() {
		return WhyView{}, false
	}
	h := spec.Shape()
	v := s.whyHead(command.JobID{Site: site}, spec.Need, spec.Count)
	v.Refused, v.State, v.Priority = s.refusal(x, spec, &h), Queued, spec.Priority
	q := inquiry{s: s, owner: x, shape: &h, seq: s.nextSeq, order: spec.Order()}
	q.answer(&v)
	return v, true
}

func (s *views) whyHead(id command.JobID, need command.Resources, waiting uint32) WhyView {
	return WhyView{
		Index: s.index, TimeMs: s.time, Params: s.params, Policy: s.Policy(), Job: id, Need: need,
		QueuedMs: s.time, Waiting: waiting,
	}
}

// inquiry is one question: about a job, or about a hypothetical one as if it had just been submitted.
type inquiry struct {
	s     *views
	owner *site
	shape *command.Shape
	job   *job   // nil: a hypothetical job
	seq   uint64 // of the job, or the next one
	order int32

	reach    reach
	account  func(x *site) *sched.Account // as of now
	competes map[*class]bool
	turns    []turn        // by rank, then by the oldest head; of sites with competing tasks
	places   map[*site]int // in turns
}

func (q *inquiry) answer(v *WhyView) {
	if q.reach = q.s.reachOf(q.shape); len(q.reach.spots) == 0 {
		_, v.Unfit = q.s.anyFits(q.shape)
	}
	q.competes, q.places = map[*class]bool{}, map[*site]int{}
	q.rankSites()
	q.count(v)
	v.Sites = make([]SiteWhy, 0, len(q.s.order))
	for _, x := range q.s.order {
		v.Sites = append(v.Sites, q.site(x))
	}
	for i, name := range q.s.unknownSites(q.shape) {
		x := SiteWhy{Site: name, Why: HinderedUnknown}
		if i < maxCensus { // each takes some work
			x.Near = q.s.nearSite(name)
		}
		v.Sites = append(v.Sites, x)
	}
}

// count fills in what goes first.
func (q *inquiry) count(v *WhyView) {
	v.Ahead.Exact = true
	me := q.places[q.owner]
	for i := range q.turns[:me] {
		t := &q.turns[i]
		v.Ahead.Sites++
		v.Ahead.Others += t.waiting
		v.Ahead.MilliCPU += t.cpu
	}
	for _, h := range q.turns[me].heads {
		if h.lane == nil {
			continue
		}
		n, exact := q.s.aheadIn(h.lane, q.order, q.seq, max(whyWalk/len(q.turns[me].heads), 64))
		v.Ahead.Own += n
		v.Ahead.MilliCPU += int64(n) * h.lane.class.Need.MilliCPU
		v.Ahead.Exact = v.Ahead.Exact && exact
	}
	p := &q.account(q.owner).Projection
	v.PerUnit = p.Ahead.MulInt64(p.Scale)
	v.Claims = make([]Claim, 0, len(q.turns))
	for i := range q.turns {
		t := &q.turns[i]
		v.Claims = append(v.Claims, Claim{t.site.name, t.rank, t.site.account.Share, t.waiting, t.cpu})
		if i < MaxTurns-1 || i == me || (i == MaxTurns-1 && me < i) {
			v.Turns = append(v.Turns, q.viewTurn(i, me))
		}
	}
}

func (q *inquiry) viewTurn(i, me int) TurnView {
	s, t := q.s, &q.turns[i]
	a := &t.site.account
	c, u, p := s.standing(t.site)
	v := TurnView{
		Site: t.site.name, Place: i + 1, Waiting: t.waiting, OldestMs: t.first.ms,
		Contribution: c.String(), Utility: u.String(), Priority: p.String(),
		Tied: i != me && t.rank.Compare(q.turns[me].rank) == 0,
	}
	switch s.params.Policy {
	case sched.Alone, sched.CE, sched.Shapley:
		v.Excess = sched.Excess(t.rank, &q.account(t.site).Projection).String()
		v.Endless = s.waits.queues.Own(int(t.site.id)) == sched.MaxWait
	case sched.FairShare:
		v.Usage, v.Share = t.rank.Num.Neg().String(), a.Share
	case sched.RoundRobin:
		if v.Chosen = a.LastStart > 0; v.Chosen {
			v.StartsAgo = s.decisions - a.LastStart
		}
	}
	return v
}

// InUse yields how many milli-cores of each site's machines the federation uses now, by site.
func (s *views) InUse(yield func(site string, milliCPU int64)) {
	for _, x := range s.order {
		yield(x.name, x.used.MilliCPU)
	}
}
