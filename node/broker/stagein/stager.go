package stagein

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// maxStagings is how many attempts of an owner have files looked at and fetched at a time, maxPulls how many of
	// these pull: on a thin uplink each would have a part of next to nothing, and all would stall.
	maxStagings, maxPulls = 16, 4
	// maxHanded is how many attempts have their files in memory at a time, to be handed to their handlers.
	maxHanded = 16
	// maxContents bounds the contents of a task's files that stand in manifests and in its spec.
	maxContents = 32 << 20
)

// Config is what a Stager is made of.
type Config struct {
	Site  string
	Store *store.Store
	// Transfers bring blobs from other sites' brokers.
	Transfers transfer.Puller
	// Where returns the peer address of a site's broker, "" = it has none, and the entry of the state that says so.
	Where func(site string) (addr string, index uint64)
	// UserOf returns the user of a job of this site.
	UserOf func(num uint64) string
	// LendMax is how many bytes files and outputs of another site's task may take.
	LendMax int64
	// Free returns how many bytes the disk has beyond what must stay free; nil = enough.
	Free func() int64
}

// Stager brings files. It is safe for concurrent use.
type Stager struct {
	cfg    Config
	handed chan struct{} // a token for each attempt whose files are in memory
	pause  func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex
	owners  map[string]*owner
	flights map[store.Ref]*flight
}

// owner is another site while something of it is staged.
type owner struct {
	stagings, pulls chan struct{} // a token for each
	users           int           // guarded by Stager.mu
}

// New returns a Stager.
func New(cfg Config) *Stager {
	if cfg.Free == nil {
		cfg.Free = func() int64 { return store.Unbounded }
	}
	return &Stager{
		cfg: cfg, handed: make(chan struct{}, maxHanded), pause: coord.Sleep, owners: map[string]*owner{},
		flights: map[store.Ref]*flight{},
	}
}

// Order names an attempt and what it needs.
type Order struct {
	ID executor.ID
	// Index is the task's for its user, which says which one of each file it gets.
	Index  uint32
	Inputs []jobspec.Input
	// OutputBytes are reserved for what it leaves.
	OutputBytes int64
	// Absolute paths are allowed: it has an image.
	Absolute bool
	// Tell says what is done, one line for people; nil = nobody listens.
	Tell func(what string)
}

// Error says whose fault it is that files cannot be had.
type Error struct {
	Fault inputs.Fault
	Err   error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

func fault(f inputs.Fault, format string, args ...any) error {
	return &Error{f, fmt.Errorf(format, args...)}
}

// place returns where the files of an attempt are, and the attempt's name in the state.
func (s *Stager) place(id executor.ID) (store.Place, command.AttemptRef, error) {
	ref, err := node.AttemptOf(id)
	if err != nil {
		return store.Place{}, ref, fault(inputs.Broken, "%w", err)
	}
	at := store.CacheOf(ref.Job.Site)
	if ref.Job.Site == s.cfg.Site {
		at = store.OwnOf(s.cfg.UserOf(ref.Job.Num))
	}
	return at, ref, nil
}

// pinOf is the name of an attempt's pins.
func pinOf(id executor.ID) string { return "attempt/" + id.String() }

// Drop ends what keeps the files of an attempt here.
func (s *Stager) Drop(id executor.ID) { s.cfg.Store.Unpin(pinOf(id)) }

// join returns an owner, and what leaves it.
func (s *Stager) join(site string) (*owner, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owners[site]
	if o == nil {
		o = &owner{stagings: make(chan struct{}, maxStagings), pulls: make(chan struct{}, maxPulls)}
		s.owners[site] = o
	}
	o.users++
	return o, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if o.users--; o.users == 0 {
			delete(s.owners, site)
		}
	}
}

// enter waits for a token.
func enter(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// classify finds whose fault an error is.
func classify(ctx context.Context, err error) error {
	var known *Error
	var refused *transfer.RefusedError
	var short *store.ShortError
	f := inputs.NoRoom // this site's own trouble
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		f = inputs.Cancelled
	case errors.As(err, &short):
		f = inputs.Full
	case errors.As(err, &refused) && (refused.Refusal == transfer.Behind || refused.Refusal == transfer.Busy):
		f = inputs.Away
	case errors.As(err, &refused), errors.Is(err, store.ErrWrongHash):
		f = inputs.Refused
	case errors.Is(err, transfer.ErrUnreachable), errors.Is(err, transfer.ErrStalled), errors.Is(err, transfer.ErrPeer):
		f = inputs.Away
	}
	return &Error{f, err}
}

// blobName is a blob's name for people.
func blobName(h files.Hash) string { return h.String()[:12] }
