package attempts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Record is what a handler itself knows of an attempt: a pointer to a struct that embeds
// [Attempt], which Common returns.
type Record interface {
	comparable
	Common() *Attempt
}

// Set holds the attempts that a handler has: what the contract asks of every handler,
// whatever runs the tasks. Forgotten attempts stay until the store of outputs has
// them, so that none of them runs again.
type Set[W Record] struct {
	// Events are for the broker.
	Events *Queue
	// Quit is closed when the handler is.
	Quit chan struct{}

	mu      *sync.Mutex // the handler's
	release func(Hold)
	keeper  *keeper
	store   *outputs.Store
	own     bool // store is closed with the handler

	// Guarded by mu.
	by      map[string]W
	adopted bool
	closing bool // no new attempts
	kept    int  // ended attempts whose files are kept until they are forgotten
	closed  bool
}

// NewSet returns the set of a handler that is guarded by mu. release gives back the
// room of an attempt, and is called with mu held; shelf says where the handler has the
// output of ended attempts. Close ends its goroutines.
func NewSet[W Record](mu *sync.Mutex, k Keeping, release func(Hold), shelf Shelf) (*Set[W], error) {
	a := &Set[W]{mu: mu, release: release, store: k.Outputs, by: map[string]W{}, Quit: make(chan struct{})}
	if a.store == nil {
		var err error
		if a.store, err = OpenStore(k.Dir, k.Retention, k.Logger); err != nil {
			return nil, err
		}
		a.own = true
	}
	a.keeper, a.Events = startKeeper(a.store, shelf, k.Logger), newQueue()
	return a, nil
}

// Start implements the part of Start that all handlers share: a repeat of a known id waits for the
// first one's answer. admit makes the record and takes room, with the handler's
// lock held; begin is called without it. If begin fails, nothing of the attempt is
// known any more.
func (a *Set[W]) Start(ctx context.Context, t executor.Task, admit func() (W, error), begin func(W) error) error {
	name := t.ID.String()
	if !ValidName(name) {
		return fmt.Errorf("start %.80q: %w: an id holds only [a-z0-9.-], at most 200", name, executor.ErrUnfit)
	}
	w, first, err := a.admit(t.ID, name, admit)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	common := w.Common()
	if !first {
		select {
		case <-common.accepted:
			return common.startErr
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", name, ctx.Err())
		}
	}
	if err = begin(w); err != nil {
		err = fmt.Errorf("start %s: %w", name, err)
		a.mu.Lock()
		a.release(common.Hold)
		delete(a.by, name)
		a.mu.Unlock()
	}
	common.startErr = err
	close(common.accepted)
	return err
}

// errHasRun refuses what would run twice.
var errHasRun = fmt.Errorf("%w: it has run and was forgotten", executor.ErrUnknownAttempt)

// admit enters a new attempt, or finds the one of that name.
func (a *Set[W]) admit(id executor.ID, name string, admit func() (W, error)) (w W, first bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return w, false, ErrClosed
	}
	if !a.adopted {
		return w, false, ErrNotAdopted
	}
	if known, ok := a.by[name]; ok {
		if known.Common().Forgotten {
			return w, false, errHasRun
		}
		return known, false, nil
	}
	if a.store.Has(id) {
		return w, false, errHasRun
	}
	if w, err = admit(); err != nil {
		return w, false, err
	}
	a.by[name] = w
	return w, true, nil
}

// Enter adds an attempt of an earlier life. REQUIRES: the handler's lock held.
func (a *Set[W]) Enter(w W) { a.by[w.Common().Name] = w }

// Adopted opens the handler for Start, and returns what Adopt does: the attempts
// not forgotten, by name. REQUIRES: the handler's lock held.
func (a *Set[W]) Adopted() ([]executor.State, error) {
	if a.closed {
		return nil, fmt.Errorf("adopt: %w", ErrClosed)
	}
	a.adopted = true
	var out []executor.State
	for _, w := range a.by {
		common := w.Common()
		if common.Forgotten {
			continue
		}
		st := executor.State{Task: common.Task, Running: common.Ended == nil}
		if common.Ended == nil {
			st.Started = common.Began
		} else {
			r := common.Ended.Result
			st.Ended = &r
			if common.IsKept() {
				a.kept++
			}
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b executor.State) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, nil
}

// Get returns the attempt of that name, zero = none. REQUIRES: the handler's lock held.
func (a *Set[W]) Get(name string) W { return a.by[name] }

// Running returns those that have not ended. REQUIRES: the handler's lock held.
func (a *Set[W]) Running() iter.Seq[W] {
	return func(yield func(W) bool) {
		for _, w := range a.by {
			if w.Common().Ended == nil && !yield(w) {
				return
			}
		}
	}
}

// Closing reports whether nothing begins any more. REQUIRES: the handler's lock held.
func (a *Set[W]) Closing() bool { return a.closing }

// Closed reports whether the handler has let go of its attempts. REQUIRES: the handler's lock held.
func (a *Set[W]) Closed() bool { return a.closed }

// Find implements executor.Finder: forgotten attempts count as long as their output is
// kept.
func (a *Set[W]) Find(job string, task, attempt uint32) (executor.ID, error) {
	if id, ok := a.findHere(job, task, attempt); ok {
		return id, nil
	}
	return a.store.Find(job, task, attempt)
}

// FindNewest implements executor.Finder: forgotten attempts count, too.
func (a *Set[W]) FindNewest(job string, tasks []uint32) []executor.Newest {
	here := a.newestHere(job)
	found := make([]executor.Newest, len(tasks))
	for i, task := range tasks {
		if found[i] = a.store.FindNewest(job, task); here[task] > found[i].Attempt {
			found[i] = executor.Newest{Attempt: here[task]}
		}
	}
	return found
}

// newestHere returns the newest attempt of each task of a job that is not in the store
// alone.
func (a *Set[W]) newestHere(job string) map[uint32]uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	newest := map[uint32]uint32{}
	for _, w := range a.by {
		if id := w.Common().Task.ID; id.Job == job {
			newest[id.Task] = max(newest[id.Task], id.Attempt)
		}
	}
	return newest
}

func (a *Set[W]) findHere(job string, task, attempt uint32) (executor.ID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.by {
		if id := w.Common().Task.ID; id.Job == job && id.Task == task && id.Attempt == attempt {
			return id, true
		}
	}
	return executor.ID{}, false
}

// RemovedOutput implements executor.OutputHistory.
func (a *Set[W]) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	return a.store.Removed(job, task, attempt)
}

// Stop implements the part of Stop that all handlers share: stop is called for what runs, with the
// handler's lock held.
func (a *Set[W]) Stop(ctx context.Context, id executor.ID, stop func(W) error) error {
	w, ok := a.find(id)
	if !ok {
		return nil
	}
	common := w.Common()
	select { // a stop that overtakes its start would be lost
	case <-common.accepted:
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", common.Name, ctx.Err())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if common.startErr != nil || common.Ended != nil {
		return nil
	}
	if a.closed {
		return fmt.Errorf("stop %s: %w", common.Name, ErrClosed)
	}
	if err := stop(w); err != nil {
		return fmt.Errorf("stop %s: %w", common.Name, err)
	}
	return nil
}

func (a *Set[W]) find(id executor.ID) (W, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w, ok := a.by[id.String()]
	return w, ok
}

// Extend implements a handler's Extend: it moves the fence that its watchdogs have mapped,
// unless the handler has let go of it.
func (a *Set[W]) Extend(fence *watchdog.Page, boottime int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("extend fences: %w", ErrClosed)
	}
	fence.Extend(boottime)
	return nil
}

// Settle ends an attempt and tells it; a second end changes nothing.
// REQUIRES: the handler's lock held.
func (a *Set[W]) Settle(w W, e *End) {
	common := w.Common()
	if common.Ended != nil {
		return
	}
	a.release(common.Hold)
	common.Ended, common.Task.Files = e, nil
	if common.IsKept() {
		a.kept++
	}
	close(common.Done)
	r := e.Result
	a.Events.Put(executor.Event{ID: common.Task.ID, Ended: &r})
}

// EndedOne returns an attempt that has ended and was not forgotten.
func (a *Set[W]) EndedOne(id executor.ID) (w W, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w, ok := a.by[id.String()]
	switch {
	case a.closed:
		return w, ErrClosed
	case !ok || w.Common().Forgotten:
		return w, executor.ErrUnknownAttempt
	case w.Common().Ended == nil:
		return w, ErrRunning
	}
	return w, nil
}

// maxKept bounds the ended attempts whose files wait to be collected and forgotten.
const maxKept = 1000

// MayKeep refuses an attempt that is to leave files as long as those of too many wait.
// REQUIRES: the handler's lock held.
func (a *Set[W]) MayKeep(t executor.Task) error {
	if t.Outputs.Wanted() && a.kept >= maxKept {
		return fmt.Errorf("%w: the files of %d ended attempts wait to be collected", executor.ErrBusy, a.kept)
	}
	return nil
}

// EndOf returns how the attempt ended, nil as long as it runs.
func (a *Set[W]) EndOf(w W) *End {
	a.mu.Lock()
	defer a.mu.Unlock()
	return w.Common().Ended
}

// Forget implements the part of Forget that all handlers share: note writes it where Adopt reads, with
// the handler's lock held.
func (a *Set[W]) Forget(id executor.ID, note func(W) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := id.String()
	w, ok := a.by[name]
	switch {
	case a.closed:
		return fmt.Errorf("forget %s: %w", name, ErrClosed)
	case !ok:
		return fmt.Errorf("forget %s: %w", name, executor.ErrUnknownAttempt)
	case w.Common().Forgotten:
		return nil
	case w.Common().Ended == nil:
		return fmt.Errorf("forget %s: %w", name, ErrRunning)
	}
	if err := note(w); err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	if w.Common().IsKept() {
		a.kept--
	}
	a.Keep(w)
	return nil
}

// Keep leaves a forgotten attempt to the store of outputs; its name is still known, so
// that it cannot run again. REQUIRES: the handler's lock held.
func (a *Set[W]) Keep(w W) {
	common := w.Common()
	common.Forgotten = true
	common.Task.Command, common.Task.Env, common.Task.Files = nil, nil, nil // there can be thousands
	a.keeper.add(Kept{
		ID: common.Task.ID, Name: common.Name, At: common.Ended.At, Out: common.Ended.Out,
		Note: common.NoOutput, old: !a.adopted,
	})
}

// KeepNow puts what waits into the store of outputs, as happens by itself some time.
func (a *Set[W]) KeepNow() { a.keeper.keepAll() }

// Drop removes the last trace of an attempt. REQUIRES: the handler's lock held.
func (a *Set[W]) Drop(name string) { delete(a.by, name) }

// Shut is the first half of a handler's Close: from now on nothing begins or is
// told. False: it was shut before. REQUIRES: the handler's lock held.
func (a *Set[W]) Shut() bool {
	if a.closed {
		return false
	}
	a.closed, a.closing = true, true
	close(a.Quit)
	return true
}

// Close is the last half: it ends the goroutines of its own. REQUIRES: Shut before,
// or nothing begun.
func (a *Set[W]) Close() {
	a.keeper.close()
	a.Events.Close()
	if a.own {
		_ = a.store.Close() // all that it has is synced
	}
}

// End implements a handler's End: it stops every attempt, waits until each is gone as the
// handler means it, and closes h. still says what goes on ending one that takes
// longer than ctx.
func (a *Set[W]) End(ctx context.Context, h executor.Handler, gone func(W) <-chan struct{}, still string) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closing = true
	running := slices.Collect(a.Running())
	a.mu.Unlock()
	var errs []error
	for _, w := range running {
		errs = append(errs, h.Stop(ctx, w.Common().Task.ID, "the broker shuts down"))
	}
	for _, w := range running {
		select {
		case <-gone(w):
		case <-ctx.Done():
			return fmt.Errorf("end attempts: %s still runs, %s: %w", w.Common().Name, still, ctx.Err())
		}
	}
	return errors.Join(append(errs, h.Close())...)
}
