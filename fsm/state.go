package fsm

import (
	"errors"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/sched"
)

// Bounds of the replicated state. They are constants of the apply version:
// every member must refuse the same submissions.
const (
	// MaxShapes bounds the different requirements of one site's open jobs.
	MaxShapes = 256
	// MaxMembers bounds the sites that ever registered.
	MaxMembers = 10_000
	// MaxLosses ends a task: one that kills its site must not walk through all.
	MaxLosses = 5
	// DetailTasks: a job with at most so many tasks keeps a record of each ended
	// task; a larger one keeps runs of equal ends only.
	DetailTasks = 10_000
	// stopMs is how long a task stays in stopping without a word of its site: far
	// longer than any grace of a handler, and than a broker takes to restart.
	stopMs = 600_000
	// maxRetire bounds how many jobs leave in one entry.
	maxRetire = 8192
	// maxSteps are some 20 to 40 ms: see steps.go.
	maxSteps = 1 << 19
)

// Errors of the state.
var (
	// ErrNameTaken: another data directory owns the site's name, or this one
	// owns another name.
	ErrNameTaken = errors.New("name taken")
	// ErrUnknownCommand: an entry holds what this version does not know. The
	// node must stop: skipping it would make replicas differ.
	ErrUnknownCommand = errors.New("unknown command")
	// ErrNewVersion: the federation goes by an apply version that this code does
	// not know. The node must stop: it would compute another state.
	ErrNewVersion = errors.New("apply version not known")
	// ErrPolicySites: see State.CanUse.
	ErrPolicySites = errors.New("too many sites for the policy")
	// ErrBadSnapshot: bytes that no State of a known version wrote.
	ErrBadSnapshot = errors.New("bad snapshot")
)

// State is the federation after some entry. It is not safe for concurrent use;
// methods that do not say that they change it never do, not even hidden.
//
// What matching needs (queues, free capacity, accounts, indexes) is derived
// from the rest and rebuilt by Restore, so it is in no snapshot.
type State struct {
	index uint64 // Invariant: grows with each Apply, by one within an epoch; see Epoch
	epoch uint64 // pages of this epoch are not shared with a snapshot

	term     uint64 // Invariant: never falls
	termBase int64  // log time at the first entry of term, ms
	time     int64  // Invariant: never falls; ms since genesis

	version    uint32 // apply version in force; Invariant: never falls; 0 until Genesis
	founded    uint64 // entry of Genesis, 0 = not yet
	federation [16]byte
	createdMs  int64
	seed       uint64
	params     command.Params
	policy     sched.Policy

	decisions   uint64 // assignments made; keys the choice of machines
	nextSeq     uint64 // of the next job; seqs start at 1
	nextReserve int64  // log time before which no reservation is looked for
	heldUntil   int64  // log time before which nothing is assigned; see recover
	parkedUntil int64  // no lost site's departure ends at an earlier log time; 0 = none does

	sites []*site // by registration; site.id is the position
	jobs  store.Pages[job]

	attempts     store.Pages[attempt] // live ones, by slot
	reservations []reservation        // by creation
	waits        *waits               // nil unless the policy is one by projected waits

	// Work that is left for the next entries; see long.go and match.go.
	chores []chore // in the order in which they are done
	phase  matchPhase
	retry  uint64  // machines drawn for the next decision; phase cut only
	search *search // for reservations, nil = none is under way

	// Derived.
	byName    map[string]*site
	byNode    map[[16]byte]*site // by data directory
	order     []*site            // by name; site.pos is the position
	supply    store.Fenwick      // by site.pos: totals of site.free
	stock     store.Fenwick      // by site.pos: totals of site.stock
	slots     store.Stack        // free ones below nextSlot
	nextSlot  uint64
	live      map[taskKey]uint64  // slots
	held      map[uint64]*machine // by seq of the job it is reserved for
	classes   map[string]*class
	payloads  map[string]*payload
	labelSets map[command.Labels]*labelSet
	labelNo   uint64             // of the last one made
	active    []*class           // with waiting > 0
	waiting   uint64             // tasks of all sites
	present   uint64             // those whose owner is present: only they are matched
	fresh     []*class           // that wait since the last match, or this pass, began
	late      []*class           // that wait since this pass began; phase cut only
	pass      uint64             // over the machines: numbers are of this replica
	missed    int                // sites with missed
	members   int                // sites whose departure is not over: who shares the quotas
	limits    limits             // of each of them
	kept      int                // ended jobs
	keepers   store.Heap[*site]  // with ended jobs, by their oldest
	crowded   []*site            // all that keep more than they may, and others
	recrowd   bool               // quotas shrank in this entry. Invariant: false between entries
	retiring  []*site            // those of which jobs leave in this entry. Invariant: empty between entries
	assigned  int                // live attempts not reported running
	dying     int                // live attempts on phaseAwaitingBound
	due       store.Heap[uint64] // slots of attempts that are settled by a time
	leftovers map[leftKey]uint64 // slots

	cancelling map[uint64]bool     // jobs with a chore that cancels them
	left       store.Heap[pending] // what chores[0] has before it of what has been gathered
	gathering  bool                // that has begun
	gathered   bool                // and is done
	tried      []*machine          // in this pass: those with tried, and others
	triedMost  int                 // see pruneTried
	prolonging bool                // attempts have outlived their lengths; see State.prolong

	sought uint64 // searches of a lane past jobs that were declined, of this replica; for tests

	bounds bounds // the same at all members; no part of the state
	steps  counter

	// Of one Apply; no part of the state.
	drawing bool     // match is under way
	events  *[]Event // nil = nobody observes
	charged int64    // log milliseconds charged for the attempt that is being settled
	raised  uint32   // version from the next entry on, 0 = as before
}

// taskKey names a task inside the state.
type taskKey struct {
	seq  uint64
	task uint32
}

// New returns the empty state before the first entry.
func New() *State { return newState(realBounds()) }

func newState(b bounds) *State {
	s := &State{
		bounds: b, limits: b.limitsOf(0), nextSeq: 1, pass: 1, byName: map[string]*site{}, byNode: map[[16]byte]*site{}, live: map[taskKey]uint64{}, held: map[uint64]*machine{}, leftovers: map[leftKey]uint64{},
		classes: map[string]*class{}, payloads: map[string]*payload{}, labelSets: map[command.Labels]*labelSet{},
		cancelling: map[uint64]bool{},
	}
	s.makeHeaps()
	return s
}

// makeHeaps gives the heaps their orders. Those of attempts and sites know where each stands.
func (s *State) makeHeaps() {
	s.left.Before = (*pending).isBefore
	s.keepers = store.Heap[*site]{
		Before: func(x, y **site) bool { return (*x).leavesBefore(*y) },
		Moved:  func(x *site, to int) { x.keeperAt = to },
	}
	s.due = store.Heap[uint64]{
		Before: func(i, k *uint64) bool { return s.isDueBefore(*i, *k) },
		Moved:  func(slot uint64, to int) { s.attempts.Mut(slot, s.epoch).rank = int32(to) },
	}
}

// Index is the number of the last entry applied.
func (s *State) Index() uint64 { return s.index }

// Time is the log time, milliseconds since genesis.
func (s *State) Time() int64 { return s.time }

// Term is the greatest leader's term seen.
func (s *State) Term() uint64 { return s.term }

// Federation is the uuid given at genesis, zero before.
func (s *State) Federation() [16]byte { return s.federation }

// CreatedMs is the genesis date in unix milliseconds, for people.
func (s *State) CreatedMs() int64 { return s.createdMs }

// Params are the parameters in force.
func (s *State) Params() command.Params { return s.params }

// quanta turns log milliseconds into the utilities' unit.
func (s *State) quanta(ms int64) int64 { return ms / s.params.QuantumMs }

// weight is the charge rate of a task, per quantum, at the rates in force. It
// is at most MaxTaskWeight.
func (s *State) weight(r command.Resources) int64 {
	return r.MilliCPU*s.params.RateCPU + r.MemMiB*s.params.RateMem + r.GPU*s.params.RateGPU
}
