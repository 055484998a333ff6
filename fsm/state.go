package fsm

import (
	"errors"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/fsm/roster"
)

// Bounds of the replicated state. They are constants of the apply version: every member must refuse the same
// submissions.
const (
	// MaxShapes bounds the different requirements of one site's open jobs.
	MaxShapes = 256
	// MaxMembers bounds the sites that ever registered.
	MaxMembers = 10_000
	// MaxLosses is the number of losses that ends a task: one that kills its site must not do so to all.
	MaxLosses = 5
	// DetailTasks is the greatest size of a job that keeps a record of each ended task; a larger one
	// keeps only runs of equal ends.
	DetailTasks = 10_000
	// stopMs is how long a task stays in stopping without a report from its site: far longer than any
	// handler's grace period, and than a broker takes to restart.
	stopMs = 600_000
	// maxRetire bounds how many jobs leave in one entry.
	maxRetire = 8192
	// maxSteps is some 20 to 40 ms: see steps.go.
	maxSteps = 1 << 19
)

// Errors of the state.
var (
	// ErrNameTaken means that another data directory owns the site's name, or this one owns another name.
	ErrNameTaken = errors.New("name taken")
	// ErrUnknownCommand means that Apply was handed a body of a type that it does not know, which no decoder makes.
	ErrUnknownCommand = errors.New("unknown command")
	// ErrNewVersion means that an apply version is in force that this code does not know. The node must
	// stop: it would compute another state.
	ErrNewVersion = errors.New("apply version not known")
	// ErrPolicySites is returned by State.CanUse.
	ErrPolicySites = errors.New("too many sites for the policy")
	// ErrBadSnapshot means bytes that no State of a known version wrote.
	ErrBadSnapshot = errors.New("bad snapshot")
)

// State is the federation after some entry. It is not safe for concurrent use. Methods that do not say that they
// change it never do, not even internally.
//
// What matching needs (queues, free capacity, accounts, indexes) is derived from the rest and rebuilt by Restore,
// so it is in no snapshot.
//
// It is made of layers, each of which embeds those below: see layers.go. Its own methods execute commands and do
// the work that is left to later entries.
type State struct {
	views

	parkedUntil int64   // no lost site's departure ends at an earlier log time; 0 = none ends
	chores      []chore // work left for the next entries, in the order in which it is done; see long.go

	// Derived.
	next       uint32              // NextVersion since a site last joined, left or registered, 0 = not computed
	newParams  bool                // parameters were set in this entry. Invariant: false between entries
	retiring   []*site             // sites of which jobs leave in this entry. Invariant: empty between entries
	left       store.Heap[pending] // gathered attempts that chores[0] has not yet treated
	gathering  bool                // gathering has begun
	gathered   bool                // and is done
	prolonging bool                // attempts have outlived their lengths; see State.prolong

	raised uint32 // version from the next entry on, 0 = unchanged; not part of the state
}

// taskKey identifies a task inside the state.
type taskKey struct {
	seq  uint64
	task uint32
}

// New returns the empty state before the first entry.
func New() *State { return newState(realBounds()) }

func newState(b bounds) *State {
	s := &State{}
	s.bounds, s.limits, s.nextSeq, s.pass = b, b.limitsOf(0), 1, 1
	s.byName, s.byNode = map[string]*site{}, map[[16]byte]*site{}
	s.classes, s.payloads, s.labelSets = map[string]*class{}, map[string]*payload{}, map[command.Labels]*labelSet{}
	s.live, s.leftovers = map[taskKey]uint64{}, map[leftKey]uint64{}
	s.held, s.cancelling = map[uint64]*machine{}, map[uint64]bool{}
	s.roster = roster.New(b.roster)
	s.makeHeaps()
	return s
}

// makeHeaps sets the orders of the heaps. Entries of those of attempts and sites know their places.
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

// Index returns the number of the last entry applied.
func (s *clock) Index() uint64 { return s.index }

// Time returns the log time, in milliseconds since genesis.
func (s *clock) Time() int64 { return s.time }

// Term returns the greatest leader's term seen.
func (s *clock) Term() uint64 { return s.term }

// Federation returns the uuid given at genesis, zero before.
func (s *clock) Federation() [16]byte { return s.federation }

// CreatedMs returns the genesis date in unix milliseconds, for people to read.
func (s *clock) CreatedMs() int64 { return s.createdMs }

// Params returns the parameters in force.
func (s *clock) Params() command.Params { return s.params }

// quanta converts log milliseconds to the unit of the utilities.
func (s *clock) quanta(ms int64) int64 { return ms / s.params.QuantumMs }

// weight returns the charge rate of a task, per quantum, at the rates in force. It is at most MaxTaskWeight.
func (s *clock) weight(r command.Resources) int64 {
	return r.MilliCPU*s.params.RateCPU + r.MemMiB*s.params.RateMem + r.GPU*s.params.RateGPU
}
