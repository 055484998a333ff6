package fsm

import (
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/sched"
)

// site is a member of the federation. It is never removed: its account stays, so that leaving and returning
// does not clear it.
type site struct {
	id   int32 // position in State.sites
	pos  int   // position in State.order
	name string
	node [16]byte

	// boots has the current process first, then earlier ones, so that a late duplicate of an old
	// registration cannot replace the newer one.
	boots              [][16]byte
	http, peer, gossip string
	maxVersion         uint32
	state              SiteState
	lostMs             int64           // log time of the loss, while state ≥ SiteGone
	gone               bool            // its departure is over. Invariant: then nothing of it waits
	missed             bool            // its machines may rest without need: see State.noteMissed
	closed             command.Closure // why it lends nothing, as its broker says; of its current incarnation
	idleMs             int64           // see command.Ahead; of its current incarnation, 0 = nothing is assigned ahead

	incarnation uint64         // Invariant: grows with each registration, by one within an epoch
	floor       uint64         // results ≤ floor are forgotten
	window      []answer       // sorted by seq, floor < seq ≤ floor+Window
	windowEpoch uint64         // in which its array was copied: no snapshot shares it
	registered  command.Result // of the latest Register

	settled    uint64         // smaller numbers that are not in the state are refused
	maxNum     uint64         // greatest number seen
	retired    store.NumRange // numbers ≥ settled whose jobs left
	usageBatch uint64         // last batch of home runs
	lastStart  uint64         // decision number of the latest start of its tasks

	offerVersion uint64
	offers       uint64     // offers ever installed; Invariant: only grows; an increase lifts bars
	machines     []*machine // those it offers, by name
	capacity     command.Resources
	home         command.Resources

	homeRan  sched.Int128 // ψ″ of home runs, which is also in the row's own cell. Invariant: only grows
	row      []cell       // what its tasks used, by executor
	rowEpoch uint64
	waits    waitSite

	// The rest is derived. Fields that a submission and an assignment use stand together.
	nums         map[uint64]uint64 // job number → seq
	use          use
	open         []opening                 // its jobs that have not ended, by requirement; their order has no meaning
	openSeqs     store.Sorted[uint64]      // its jobs that have not ended
	delivering   store.Sorted[deliveryKey] // its tasks whose outputs are on their way to it
	deliveryAt   uint64                    // entry in which delivering last changed
	held         uint64                    // tasks of its jobs that are held
	again        store.Sorted[deliveryKey] // those of them that ran, in the order in which they became held
	againAt      uint64                    // entry in which again last changed
	againLeft    uint64                    // entry in which something last left again without its Release
	settledAt    uint64                    // entry in which something last left delivering without its Deliver
	unwanted     uint64                    // entry in which outputs that it keeps were last no longer wanted
	lanes        []*lane                   // with waiting tasks
	counted      bool                      // its lanes are matched. Invariant: equal to present() between entries
	waiting      uint64                    // tasks
	cpu          int64                     // milli-cores of waiting tasks
	ended        store.Sorted[uint64]      // seqs of its ended jobs by (endedMs, seq)
	trimmed      int                       // this many of ended, from the first on, have no records
	oldestMs     int64                     // when the first job in ended ended
	keeperAt     int                       // position in State.keepers, while it has ended jobs
	crowded      bool                      // it is in State.crowded
	retiring     []uint64                  // numbers of jobs that leave in this entry. Invariant: empty between entries
	live         liveList                  // attempts here
	changed      uint64                    // entry of the last change that the site must see
	taken        uint64                    // entry that last took an attempt without its site's report
	free         store.Fenwick             // by machine.pos: free milli-cores of machines that do not rest
	stock        store.Fenwick             // the same for all machines not tried in this entry
	heldFor      int                       // reservations for its jobs
	heldMachines int                       // reservations of its machines
	wokenAt      uint64                    // entry in which all of its machines were last woken; see State.wakeSite
	former       map[string]*machine       // no longer offered, while they are in use
	used         command.Resources         // sum over all machines of machine.used
	reach        command.Resources         // sum over all machines of machine.reach
	rank         sched.Rank                // as of entry rankAt
	rankAt       uint64
	account      sched.Account     // Projection.Started is not derived
	exposed      command.Resources // sum over offered machines
	most         command.Resources // greatest whole over offered machines, for each part
	widest       command.Resources // the same for exposed
	cancels      string            // the reason of what is cancelled at its broker
	// holds are slots of attempts: those with wordHeld, and others. No slot is reused before the
	// chore for them is done, because nothing is matched.
	holds []uint64
}

// answer is a command's recorded result.
type answer struct {
	seq    uint64
	result command.Result
}

// machine is one exposed machine of a site.
type machine struct {
	site    *site
	pos     int
	name    string            // never changed
	exposed command.Resources // zero once it is no longer offered
	whole   command.Resources // Invariant: ≥ exposed in every part
	runs    command.Runs      // while it is offered
	labels  *labelSet         // likewise
	slots   int64             // tasks at once, 0 = as many as fit
	offered bool
	resting bool   // fits nothing that waited at the end of an earlier entry; see State.match
	tried   bool   // not drawn again in this pass. Invariant: only during a match, and then it is in State.tried
	pass    uint64 // the last one in which it was drawn
	held    uint64 // seq of the job it is reserved for, or 0
	heldNo  uint64 // that reservation's number
	used    command.Resources
	tasks   int64 // that use it. Invariant: 0 if and only if used is zero
}

// present reports whether the site's waiting jobs take part in matching.
func (x *site) present() bool { return x.state == Alive || x.state == Suspected }

// isFull reports whether the machine runs as many tasks as it may.
func (m *machine) isFull() bool { return m.slots > 0 && m.tasks >= m.slots }

// reach returns the most that may run on the machine by its current offer and by what runs there: an offer may
// have shrunk or withdrawn it since that was assigned.
func (m *machine) reach() command.Resources { return m.exposed.Greater(m.used) }

// use adds n tasks with a need to the machine; n may be negative. A machine that is no longer offered is
// forgotten with its last task.
func (m *machine) use(need command.Resources, n int64) {
	x, before := m.site, m.reach()
	more := command.Resources{MilliCPU: n * need.MilliCPU, MemMiB: n * need.MemMiB, GPU: n * need.GPU}
	m.used, x.used = m.used.Plus(more), x.used.Plus(more)
	m.tasks += n
	x.reach = x.reach.Plus(m.reach().Minus(before))
	if !m.offered && m.tasks == 0 {
		delete(x.former, m.name)
	}
}

// isFull reports whether a site gets nothing now: it has as many attempts as its next registration can name, or
// more could run at once than a site may offer, because tasks run on machines that it has renamed or shrunk. The
// ledger's sums are proven only up to that.
func (s *fleet) isFull(x *site) bool {
	return x.live.n >= s.bounds.held || !x.reach.FitsIn(s.bounds.site)
}

// room returns what the state may still assign to the machine: nothing if it is full.
func (m *machine) room() command.Resources {
	if m.isFull() {
		return command.Resources{}
	}
	return command.Resources{
		MilliCPU: m.exposed.MilliCPU - m.used.MilliCPU,
		MemMiB:   m.exposed.MemMiB - m.used.MemMiB,
		GPU:      m.exposed.GPU - m.used.GPU,
	}
}

// addSite adds a new member.
func (s *fleet) addSite(name string) *site {
	x := &site{
		id: int32(len(s.sites)), name: strings.Clone(name), counted: true, cancels: CancelledAt(name),
		nums: map[uint64]uint64{},
	}
	s.sites, s.byName[x.name] = append(s.sites, x), x
	at, _ := slices.BinarySearchFunc(s.order, x.name, func(o *site, n string) int {
		return strings.Compare(o.name, n)
	})
	s.order, s.unindexed = slices.Insert(s.order, at, x), true
	return x
}

// indexSites computes the places of all sites, and their totals, once for all that joined: nothing is drawn
// between the commands of an entry.
func (s *fleet) indexSites() {
	if !s.unindexed {
		return
	}
	s.unindexed = false
	s.supply.Reset(len(s.order))
	s.stock.Reset(len(s.order))
	for i, o := range s.order {
		o.pos = i
		s.weighTotals(o)
	}
}

// weighTotals adds a site's totals to the weights for the choice of a machine. Only sites in state Alive offer
// anything, and nothing while they are full.
func (s *fleet) weighTotals(x *site) {
	if s.unindexed {
		return // all are weighed soon
	}
	if x.state != Alive || s.isFull(x) {
		s.supply.Set(x.pos, 0)
		s.stock.Set(x.pos, 0)
		return
	}
	if x.missed {
		s.supply.Set(x.pos, x.stock.Total())
	} else {
		s.supply.Set(x.pos, x.free.Total())
	}
	s.stock.Set(x.pos, x.stock.Total())
}

// weights returns an offered machine's weights in x.free and x.stock.
func (m *machine) weights() (free, stock int64) {
	if m.tried {
		return 0, 0
	}
	stock = max(0, m.room().MilliCPU)
	if !m.resting {
		free = stock
	}
	return free, stock
}

// weigh recomputes a machine's weights after its room changed or it began or ceased to rest.
func (s *fleet) weigh(m *machine) {
	if m.offered {
		free, stock := m.weights()
		m.site.free.Set(m.pos, free)
		m.site.stock.Set(m.pos, stock)
	}
	s.weighTotals(m.site)
}

// weighSite recomputes the weights of a whole site.
func (s *fleet) weighSite(x *site) {
	x.free.Reset(len(x.machines))
	x.stock.Reset(len(x.machines))
	for i, m := range x.machines {
		m.pos = i
		free, stock := m.weights()
		x.free.Set(i, free)
		x.stock.Set(i, stock)
	}
	s.weighTotals(x)
}

// wakeMachine makes a machine worth trying again: its room grew, or its reservation changed. If a pass that is cut
// has already drawn it, it waits for the next pass.
func (s *matching) wakeMachine(m *machine) {
	m.resting = false
	if m.pass == s.pass && !s.drawing {
		s.putAside(m)
	} else {
		m.tried = false
	}
	s.weigh(m)
}
