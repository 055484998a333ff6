package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/sched"
)

// The layers of a State, lowest first. Each embeds the one below, so a method reaches what its own layer
// and the lower ones hold and nothing above; the compiler enforces this. A method belongs to the lowest
// layer that has what it needs.

// clock is the state's position in the log, and the parameters in force.
type clock struct {
	index uint64 // Invariant: grows with each Apply, by one within an epoch; see Epoch
	epoch uint64 // pages of this epoch are not shared with a snapshot

	term     uint64 // Invariant: never falls
	leader   string // who leads term, by its own word; see Lead
	termBase int64  // log time at the first entry of term, ms
	time     int64  // Invariant: never falls; ms since genesis

	version    uint32 // apply version in force; Invariant: never falls; 0 until Genesis
	founded    uint64 // entry of Genesis, 0 = not yet
	federation [16]byte
	createdMs  int64
	seed       uint64 // of the choice of machines
	params     command.Params
	heldUntil  int64 // log time before which nothing is assigned; see recover
}

// fleet is the sites, their machines, and the data that jobs and machines share.
type fleet struct {
	clock
	bounds bounds // the same at all members; not part of the state
	steps  counter

	sites  []*site        // by registration; site.id is the position
	roster *roster.Roster // who may register, and who decides

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

// ranking decides whose turn it is: accounts, the heaps of lanes, the virtual queues.
type ranking struct {
	fleet
	policy sched.Policy
	waits  *waits // nil unless the policy uses projected waits
}

// quotas is what each site may have, and which sites keep more. All of it is derived.
type quotas struct {
	ranking
	limits  limits            // of each member
	members int               // sites whose departure is not over: those that share the quotas
	kept    int               // ended jobs
	keepers store.Heap[*site] // with ended jobs, by their oldest
	crowded []*site           // all sites that keep more than they may, and others
	recrowd bool              // quotas shrank in this entry. Invariant: false between entries
}

// attemptTable is the live attempts and leftovers, and the observer of events.
type attemptTable struct {
	quotas
	attempts store.Pages[attempt] // live ones, by slot

	// Derived.
	slots     store.Stack // free slots below nextSlot
	nextSlot  uint64
	live      map[taskKey]uint64 // slots
	assigned  int                // live attempts not reported running
	dying     int                // live attempts in phaseAwaitingBound
	due       store.Heap[uint64] // slots of attempts that are settled by a time
	leftovers map[leftKey]uint64 // slots

	// Of one Apply; not part of the state.
	events  *[]Event // nil = nobody observes
	charged int64    // log milliseconds charged for the attempt that is being settled
	beyond  int64    // and how many more its site reported than the log's time has
	// delivered: its attempt ended before, or just now, with EventTaskDelivering.
	delivered bool
}

// jobTable is the jobs and their tasks.
type jobTable struct {
	attemptTable
	jobs    store.Pages[job]
	nextSeq uint64 // of the next job; seqs start at 1
}

// matching is what waits, and the pass over the machines that serves it.
type matching struct {
	jobTable
	phase matchPhase
	retry uint64 // machines drawn for the next decision; phase cut only

	// Derived.
	active    []*class // with waiting > 0
	waiting   uint64   // tasks of all sites
	present   uint64   // tasks whose owner is present: only these are matched
	fresh     []*class // that have been waiting since the last match, or this pass, began
	late      []*class // that have been waiting since this pass began; phase cut only
	pass      uint64   // over the machines: its numbers differ between replicas
	missed    int      // sites with missed
	tried     []*machine
	triedMost int     // see pruneTried; tried holds those tried in this pass, and others
	returned  []*site // in this entry, some more than once, some away again. Invariant: empty between entries
	sought    uint64  // searches of a lane past declined jobs, at this replica; for tests

	drawing bool // match is in progress; not part of the state

	earned []earning // of one Apply; not part of the state
}

// holding is the reserved machines, and the search for more.
type holding struct {
	matching
	reservations store.Sorted[reservation] // by creation
	nextReserve  int64                     // log time before which no reservation is looked for
	search       *search                   // for reservations, nil = none in progress

	held   map[uint64]*machine // by seq of the job it is reserved for; derived
	holdNo uint64              // of the last reservation made, at this replica
}

// lifecycle assigns tasks, ends them and makes them wait again.
type lifecycle struct {
	holding
	decisions  uint64          // assignments made; keys the choice of machines
	cancelling map[uint64]bool // jobs that a chore cancels; derived
}

// views reads a state. None of its methods changes anything.
type views struct{ lifecycle }
