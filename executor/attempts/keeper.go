package attempts

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// Retention bounds what stays of forgotten attempts (their output). The oldest go
// first; attempts that are not forgotten always stay.
type Retention struct {
	Age   time.Duration // since the end; 0 = 24 h
	Bytes int64         // output of all; 0 = 10 GiB
}

// WithDefaults fills in the zero fields.
func (r Retention) WithDefaults() Retention {
	if r.Age == 0 {
		r.Age = 24 * time.Hour
	}
	if r.Bytes == 0 {
		r.Bytes = 10 << 30
	}
	return r
}

// OpenStore opens the store of outputs below a folder.
func OpenStore(dir string, rules Retention, log zerolog.Logger) (*outputs.Store, error) {
	rules = rules.WithDefaults()
	aside := NewAside(Keeping{Dir: dir, Logger: log})
	aside.sweep(time.Now().Add(-asideAge), nil)
	return outputs.Open(outputs.Config{
		Dir: filepath.Join(dir, "outputs"), Keep: rules.Age, MaxBytes: rules.Bytes,
		Aside: aside.Put, Now: time.Now, Logger: log,
	})
}

// Kept is a forgotten attempt whose output goes to the store.
type Kept struct {
	ID   executor.ID
	Name string    // of ID
	At   time.Time // its end
	Out  [2]int64
	// Note is why its output is not there, "" = it is.
	Note string
	// stored: the store has it, and what is left of it is to be dropped.
	stored bool
	// old: it was found in the handler's files, and may have been kept and removed before.
	old bool
}

// Shelf is how a handler's own files of ended attempts are found and removed.
type Shelf struct {
	// Output is the file of a stream.
	Output func(k Kept, stream int) string
	// Drop removes what is left of an attempt that the store has, and calls
	// [Set.Drop]. False: that cannot be done yet.
	Drop func(k Kept) bool
}

// Bounds of a keeper.
const (
	// keepPause is how long it collects, so that one sync serves many outputs.
	keepPause = time.Second
	// keepAgain is when it tries again what the disk has refused.
	keepAgain = 10 * time.Second
	// maxBatch bounds what it has in memory of outputs.
	maxBatch = 4 << 20
	// maxWaiting bounds the attempts that wait while the disk refuses; the oldest
	// are dropped then, without their output.
	maxWaiting = 100_000
)

// outputStore is what a keeper needs of the store.
type outputStore interface {
	Put(items []outputs.Item) error
	// FateOf says what has become of an attempt that may have been put before.
	FateOf(id executor.ID) (outputs.Fate, error)
	Stats() executor.OutputStats
}

var _ outputStore = (*outputs.Store)(nil)

// keeper puts the output of forgotten attempts into the store, beside the broker's
// work. What it has not put there is read from the handler's own files.
type keeper struct {
	store outputStore
	shelf Shelf
	log   zerolog.Logger
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	keeping sync.Mutex // held around keepAll
	mu      sync.Mutex
	waiting []Kept // oldest first; guarded by mu
}

// startKeeper starts its goroutine.
func startKeeper(store *outputs.Store, shelf Shelf, log zerolog.Logger) *keeper {
	k := &keeper{
		store: store, shelf: shelf, log: log,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go k.run()
	return k
}

// add takes over an attempt; it never blocks.
func (k *keeper) add(one Kept) {
	k.mu.Lock()
	k.waiting = append(k.waiting, one)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) run() {
	defer close(k.done)
	for {
		select {
		case <-k.wake:
		case <-k.quit:
			return
		}
		for pause := keepPause; pause > 0; {
			select {
			case <-time.After(pause):
			case <-k.quit:
				return
			}
			pause = k.keepAll()
		}
	}
}

// keepAll puts what waits into the store. It returns how long to wait before it tries the
// rest; 0 means that nothing is left.
func (k *keeper) keepAll() (pause time.Duration) {
	k.keeping.Lock()
	defer k.keeping.Unlock()
	k.mu.Lock()
	list := k.waiting
	k.waiting = nil
	k.mu.Unlock()
	slices.SortStableFunc(list, func(a, b Kept) int { return a.At.Compare(b.At) })
	var later []Kept
	for len(list) > 0 {
		if k.isClosing() {
			later = append(later, list...)
			break
		}
		b := k.read(list)
		if err := k.store.Put(b.items); err != nil {
			later, pause = append(later, list...), keepAgain
			break
		}
		if later = append(later, b.later...); len(b.later) > 0 {
			pause = keepAgain
		}
		for _, one := range b.read {
			if one.stored = true; !k.shelf.Drop(one) {
				later, pause = append(later, one), keepAgain
			}
		}
		list = list[len(b.read)+len(b.later):]
	}
	k.putBack(later)
	return pause
}

// isClosing: the rest is for the next start, which nobody should wait for.
func (k *keeper) isClosing() bool {
	select {
	case <-k.quit:
		return true
	default:
		return false
	}
}

// putBack has attempts wait again, as many as may.
func (k *keeper) putBack(later []Kept) {
	k.mu.Lock()
	k.waiting = append(later, k.waiting...)
	over := k.waiting[:max(len(k.waiting)-maxWaiting, 0)]
	k.waiting = k.waiting[len(over):]
	k.mu.Unlock()
	if len(over) > 0 {
		k.log.Warn().Int("attempts", len(over)).Msg("too many outputs wait for a disk that takes none: the oldest are removed")
	}
	for _, one := range over {
		k.shelf.Drop(one)
	}
}

// close ends its goroutine and waits for it. What waits still is found by the next
// start in the handler's own files.
func (k *keeper) close() {
	close(k.quit)
	<-k.done
}
