package replica

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Replica is this site's copy of the replicated state: the coordination
// backend writes it entry by entry, everybody else reads copies (step 5).
type Replica struct {
	mu    sync.RWMutex
	state *fsm.State
	chain Chain // over the entries that led to state
	// changed is closed and replaced by every change of the state.
	changed chan struct{}
	// dates are of log time, kept in the file datesPath ("" = not kept); datedMs is
	// the last one looked at. appended is the date of the entry that comes next.
	dates     dates
	datesPath string
	datedMs   int64
	appended  time.Time
	// wake is signalled (capacity 1) after every change, for the broker's loop.
	wake chan struct{}
	// feed takes each entry's events; told are those of the entry under way.
	feed    *Feed
	emitted []fsm.Event
	// proofs are of bundles; ahead verifies those of entries on their way.
	proofs *coord.Proofs
	ahead  ahead
	// points are hashes of the state, for comparisons with other replicas.
	points checkpoints
	// history keeps what led to the state, nil = nobody does.
	history History
	// onRoster is told who the members are, whenever that changed; told is the entry that changed it last.
	onRoster func(index uint64, c roster.Contents)
	told     uint64
	// onGossip is told the key of gossip with it.
	onGossip func(roster.GossipKey)
	// numbered is the numbering of the last job with indices that told something.
	numbered struct {
		job     command.JobID
		numbers jobspec.Numbering
	}
}

var (
	_ coord.Machine = (*Replica)(nil)
	_ coord.Dated   = (*Replica)(nil)

	_ coord.Unfinished = (*Replica)(nil)
	_ coord.Versioned  = (*Replica)(nil)
)

// NewReplica returns an empty replica.
func NewReplica() *Replica {
	r := &Replica{
		state: fsm.New(), changed: make(chan struct{}), wake: make(chan struct{}, 1),
		feed: newFeed(uint64(max(0, time.Now().UnixMicro()))), proofs: &coord.Proofs{},
	}
	r.state.Observe(&r.emitted)
	return r
}

// Dated implements coord.Dated.
func (r *Replica) Dated(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.appended = at
}

// Apply implements coord.Machine.
func (r *Replica) Apply(entry []byte) ([]command.Result, error) {
	batch, unread := command.DecodeBatch(entry)
	if unread == nil {
		r.prove(batch.Bundles)
	}
	of := sha256.Sum256(entry)
	r.mu.Lock()
	defer r.mu.Unlock()
	batch, err := r.state.Ordered(batch, unread)
	if err != nil {
		return nil, err
	}
	r.beginHistory()
	before := r.state.Time()
	results, err := r.state.Apply(batch)
	if err != nil {
		return nil, fmt.Errorf("apply entry: %w", err)
	}
	r.extendChain(of, entry)
	r.forkIfTold()
	r.checkpoint(before)
	r.date()
	r.emitEvents()
	if ofRoster(batch) {
		r.feed.touch(r.state.Index())
	}
	r.tellRoster()
	r.signal()
	return results, nil
}

// date notes when log time moved: by the leader's clock if the backend tells, the
// same at every broker and in every replay, else by this one's. REQUIRES: r.mu
// held.
func (r *Replica) date() {
	at := r.appended
	r.appended = time.Time{}
	now := r.state.Time()
	if now == r.datedMs {
		return
	}
	r.datedMs = now
	if at.IsZero() {
		at = time.Now()
	}
	r.dates.observe(now, at)
}

// maxTold is the room kept for the events of one entry.
const maxTold = 4096

// emitEvents passes the entry's events on. REQUIRES: r.mu held.
func (r *Replica) emitEvents() {
	r.feed.add(r.indexed(r.emitted))
	clear(r.emitted)
	r.emitted = r.emitted[:0]
	if cap(r.emitted) > maxTold {
		r.emitted = nil
	}
}

// signal tells readers that the state changed. REQUIRES: r.mu held.
func (r *Replica) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Woken is signalled (capacity 1) after every change, for the broker's loop.
func (r *Replica) Woken() <-chan struct{} { return r.wake }

// Snapshot implements coord.Machine.
func (r *Replica) Snapshot() (coord.Snapshot, error) {
	r.mu.Lock() // copy-on-write marks are set in the state
	defer r.mu.Unlock()
	return r.freeze(), nil
}

// Restore implements coord.Machine.
func (r *Replica) Restore(src io.Reader) error {
	chain, state, err := ReadSnapshot(src)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	r.replace(chain, state)
	return nil
}

// RestoreAt implements coord.Expecting.
func (r *Replica) RestoreAt(src io.Reader, index uint64) error {
	chain, state, err := ReadSnapshot(src)
	if err == nil && state.Index() != index {
		err = fmt.Errorf("%w: it is of entry %d, not %d", fsm.ErrBadSnapshot, state.Index(), index)
	}
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	r.replace(chain, state)
	return nil
}

// replace takes another state.
func (r *Replica) replace(chain Chain, state *fsm.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.chain = state, chain
	r.points.replaced()
	r.state.Observe(&r.emitted)
	r.feed.reset(r.state.Index())
	r.told = 0
	r.tellRoster()
	r.signal()
}

// Result implements coord.Machine.
func (r *Replica) Result(id command.ID) (command.Result, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Result(id)
}

// Index implements coord.Machine.
func (r *Replica) Index() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Index()
}

// Version implements coord.Versioned.
func (r *Replica) Version() uint32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Version()
}

// Pending implements coord.Unfinished.
func (r *Replica) Pending() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Pending()
}

// Admit implements coord.Machine.
func (r *Replica) Admit(site string, node [16]byte) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Admit(site, node)
}

// View runs f on the state, which f must not keep or change.
func (r *Replica) View(f func(*fsm.State)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.state)
}

// SiteState returns where a site stands in the state, and its incarnation.
func (r *Replica) SiteState(site string) (state fsm.SiteState, incarnation uint64) {
	r.View(func(s *fsm.State) { state, incarnation = s.SiteState(site) })
	return state, incarnation
}

var _ coord.Parting = (*Replica)(nil)

// HasLeft implements coord.Parting.
func (r *Replica) HasLeft(site string) bool {
	state, incarnation := r.SiteState(site)
	return state == fsm.Left && incarnation > 0
}

// Hash computes the state's hash concurrently with Apply and returns it with its entry.
func (r *Replica) Hash() (uint64, [32]byte) {
	r.mu.Lock()
	frozen := r.state.Snapshot()
	index := r.state.Index()
	r.mu.Unlock()
	defer frozen.Release()
	return index, frozen.Hash()
}

// Await returns when cond holds; it is asked again after every change.
func (r *Replica) Await(ctx context.Context, cond func(*fsm.State) bool) error {
	for {
		r.mu.RLock()
		ok, changed := cond(r.state), r.changed
		r.mu.RUnlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("await state: %w", context.Cause(ctx))
		}
	}
}

// WallOf turns log time into a date for people, not before earliest; a negative
// ms is the zero time. It is right to about a second for what came after the
// first entry that this broker knows of. REQUIRES: r.mu held, as inside View.
func (r *Replica) WallOf(ms int64, earliest time.Time) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	t := r.dates.date(ms)
	if t.Before(earliest) {
		return earliest
	}
	return t
}

// dated gives events of the log their dates for people.
func (r *Replica) dated(events []node.Event) []node.Event {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := range events {
		if e := &events[i]; e.ID.Home == 0 {
			e.At = r.WallOf(e.Time, time.Time{})
		}
	}
	return events
}
