package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/sched"
)

// The layers of a State, lowest first. Each holds the one below, so a method reaches
// what its own layer and the lower ones hold, and nothing above: the compiler sees to
// it. A method belongs to the lowest layer that has what it needs.

// clock is where the state stands in the log, and the parameters in force.
type clock struct {
	index uint64 // Invariant: grows with each Apply, by one within an epoch; see Epoch
	epoch uint64 // pages of this epoch are not shared with a snapshot

	term     uint64 // Invariant: never falls
	termBase int64  // log time at the first entry of term, ms
	time     int64  // Invariant: never falls; ms since genesis

	version    uint32 // apply version in force; Invariant: never falls; 0 until Genesis
	founded    uint64 // entry of Genesis, 0 = not yet
	federation [16]byte
	createdMs  int64
	params     command.Params
	heldUntil  int64 // log time before which nothing is assigned; see recover
}

// fleet is the sites, their machines, and what jobs and machines have in common.
type fleet struct {
	clock
	bounds bounds // the same at all members; no part of the state
	steps  counter

	sites []*site // by registration; site.id is the position

	// Derived.
	byName    map[string]*site
	byNode    map[[16]byte]*site // by data directory
	order     []*site            // by name; site.pos is the position
	supply    store.Fenwick      // by site.pos: totals of site.free
	stock     store.Fenwick      // by site.pos: totals of site.stock
	unindexed bool               // sites joined since these three were made. Invariant: false between entries
	classes   map[string]*class
	payloads  map[string]*payload
	labelSets map[command.Labels]*labelSet
	labelNo   uint64 // of the last one made
}

// ranking is whose turn it is: accounts, the heaps of lanes, the virtual queues.
type ranking struct {
	fleet
	policy sched.Policy
	waits  *waits // nil unless the policy is one by projected waits
}

// quotas is what each site may have, and who keeps more. All of it is derived.
type quotas struct {
	ranking
	limits  limits            // of each member
	members int               // sites whose departure is not over: who shares the quotas
	kept    int               // ended jobs
	keepers store.Heap[*site] // with ended jobs, by their oldest
	crowded []*site           // all that keep more than they may, and others
	recrowd bool              // quotas shrank in this entry. Invariant: false between entries
}

// attemptTable is the live attempts and leftovers, and who is told of what happens.
type attemptTable struct {
	quotas
	attempts store.Pages[attempt] // live ones, by slot

	// Derived.
	slots     store.Stack // free ones below nextSlot
	nextSlot  uint64
	live      map[taskKey]uint64 // slots
	assigned  int                // live attempts not reported running
	dying     int                // live attempts on phaseAwaitingBound
	due       store.Heap[uint64] // slots of attempts that are settled by a time
	leftovers map[leftKey]uint64 // slots

	// Of one Apply; no part of the state.
	events  *[]Event // nil = nobody observes
	charged int64    // log milliseconds charged for the attempt that is being settled
}

// jobTable is the jobs and their tasks.
type jobTable struct {
	attemptTable
	jobs    store.Pages[job]
	nextSeq uint64 // of the next job; seqs start at 1
}

// matching is what waits, and the pass over the machines that looks for it.
type matching struct {
	jobTable
	phase matchPhase
	retry uint64 // machines drawn for the next decision; phase cut only

	// Derived.
	active    []*class // with waiting > 0
	waiting   uint64   // tasks of all sites
	present   uint64   // those whose owner is present: only they are matched
	fresh     []*class // that wait since the last match, or this pass, began
	late      []*class // that wait since this pass began; phase cut only
	pass      uint64   // over the machines: numbers are of this replica
	missed    int      // sites with missed
	tried     []*machine
	triedMost int     // see pruneTried; tried has those tried in this pass, and others
	leavers   []*site // that left in this entry, and may be back. Invariant: empty between entries
	sought    uint64  // searches of a lane past jobs that were declined, of this replica; for tests

	drawing bool // match is under way; no part of the state
}

// holding is the machines that are reserved, and the search for more.
type holding struct {
	matching
	reservations store.Sorted[reservation] // by creation
	nextReserve  int64                     // log time before which no reservation is looked for
	search       *search                   // for reservations, nil = none is under way

	held   map[uint64]*machine // by seq of the job it is reserved for; derived
	holdNo uint64              // of the last reservation made, of this replica
}

// lifecycle is how a task is assigned, ends or waits again.
type lifecycle struct {
	holding
	decisions  uint64          // assignments made; keys the choice of machines
	cancelling map[uint64]bool // jobs with a chore that cancels them; derived
}

// views is what is read of a state. None of its methods changes anything.
type views struct{ lifecycle }
