package stageout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/record"
)

// Config is what a Keeper is made of.
type Config struct {
	Site  string
	Store *store.Store
	// Hold is how long outputs of another site's task are kept that its owner does not fetch; 0 = as long as it wants
	// them.
	Hold time.Duration
	Now  func() time.Time
	// UserOf returns the user of a job of this site.
	UserOf func(num uint64) string
	// Record makes writes of the journal durable.
	Record func(ctx context.Context, writes []record.Write) error
	// Wanted reports, by the state, whether outputs of an attempt here are still waited for; Change is the entry with
	// which that became false for one last.
	Wanted func(ref command.AttemptRef) bool
	// Left reports, by the state, whether they may be what is left of a task that did not succeed.
	Left   func(ref command.AttemptRef) bool
	Change func() uint64
	// Current returns nil once the state is as new as the federation's: before, it may not know of an attempt yet whose
	// outputs are wanted.
	Current func() error
	// KeepResult keeps the result of a task of this site's own job, durably when it returns.
	KeepResult func(num uint64, r node.TaskResult) error
	// Free returns how many bytes the disk has beyond what must stay free; nil = enough.
	Free func() int64
}

const (
	// maxGone is how many attempts are remembered whose outputs were removed.
	maxGone = 4096
	// maxDropped is how many are removed with one sync.
	maxDropped = 1000
	// lookEvery is how often it is looked for what is wanted no more, keptLooks after how many of these looks for what
	// was kept for long enough.
	lookEvery = time.Second
	keptLooks = 60
)

// Entry is what is kept of one attempt of another site's job; it is also its record in the journal.
type Entry struct {
	ID        executor.ID    `json:"id"`
	Output    command.Output `json:"output"`
	KeptMs    int64          `json:"kept_ms"` // since when, unix milliseconds
	Succeeded bool           `json:"succeeded,omitempty"`

	// released: its owner wants it no more, or it had to make room. Guarded by Keeper.mu.
	released bool
	// left: by the state it is no result, but may be what is left of a task. Guarded by Keeper.mu.
	left bool
}

// bytes returns about what an entry takes.
func (e *Entry) bytes() int64 { return e.Output.Bytes + e.Output.Size }

// mayGo reports whether it goes when room is wanted: nobody waits for what is left of a task that has not succeeded.
func (e *Entry) mayGo() bool { return (!e.Succeeded || e.left) && !e.released }

// Keeper keeps outputs. It is safe for concurrent use.
type Keeper struct {
	cfg        Config
	collecting chan struct{} // a token for each attempt that is being collected
	pause      func(ctx context.Context, d time.Duration) error

	mu sync.Mutex
	by map[command.AttemptRef]*Entry
	// waiting has what ends the waiting for room of each attempt that is being collected.
	waiting map[executor.ID]context.CancelFunc
	// copying is what own outputs may take that are being copied.
	copying int64
	gone    map[command.AttemptRef]bool
	// oldest of gone first.
	oldest []command.AttemptRef
	// seen is the Change up to which it was looked for what is wanted no more; 0 = not yet.
	seen uint64
	// due: something was released.
	due   bool
	names index
}

// New returns a Keeper of nothing.
func New(cfg Config) *Keeper {
	if cfg.Free == nil {
		cfg.Free = func() int64 { return store.Unbounded }
	}
	return &Keeper{
		cfg: cfg, collecting: make(chan struct{}, maxCollected), pause: coord.Sleep,
		by: map[command.AttemptRef]*Entry{}, gone: map[command.AttemptRef]bool{}, names: newIndex(),
		waiting: map[executor.ID]context.CancelFunc{},
	}
}

// PinOf returns the name of the pins of an attempt's outputs, and of the room that is kept for them.
func PinOf(id executor.ID) string { return "out/" + id.String() }

// Recover reads what earlier lives of the broker kept, and pins it. What cannot be read is refused to its owner.
func (k *Keeper) Recover(j record.Reader) error {
	err := j.Each(record.BucketOutgoing, func(name, v []byte) error {
		e := &Entry{}
		if err := json.Unmarshal(v, e); err != nil {
			return fmt.Errorf("outputs of %s: %w", name, err)
		}
		ref, err := node.AttemptOf(e.ID)
		if err != nil {
			return err
		}
		k.by[ref] = e
		return nil
	})
	for ref, e := range k.by {
		at, manifest := store.OutgoingOf(ref.Job.Site), files.Hash(e.Output.Manifest)
		refs := []store.Ref{{Place: at, Hash: manifest}}
		hashes, _ := k.read(at, manifest)
		for h := range hashes {
			refs = append(refs, store.Ref{Place: at, Hash: h})
		}
		k.cfg.Store.Pin(PinOf(e.ID), refs...)
	}
	return err
}

// add keeps an attempt's outputs, durably. Those of an attempt that is wanted no more go with the next look.
func (k *Keeper) add(ctx context.Context, e Entry) error {
	ref, err := node.AttemptOf(e.ID)
	if err != nil {
		return err
	}
	w := record.PutRecord(record.BucketOutgoing, []byte(e.ID.String()), e)
	if err = k.cfg.Record(ctx, []record.Write{w}); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.by[ref] = &e
	if e.Succeeded {
		k.seen = 0
	}
	return nil
}

// Run removes what is wanted no more, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		select {
		case <-tick.C:
			k.Sweep(ctx, looks%keptLooks == 0)
		case <-ctx.Done():
			return
		}
	}
}

// Sweep removes what was released, and what the state does not want any more; with aged also what was kept for long
// enough, and what failed attempts left that do not count: nobody waits for their room.
func (k *Keeper) Sweep(ctx context.Context, aged bool) {
	if k.cfg.Current() != nil {
		return
	}
	change := k.cfg.Change()
	k.mu.Lock()
	changed := k.seen == 0 || k.seen != change
	var kept []leaving
	if changed || aged || k.due {
		for ref, e := range k.by {
			if aged || e.released || changed && e.Succeeded {
				kept = append(kept, leaving{ref, e, e.released})
			}
		}
	}
	k.seen, k.due = max(change, 1), false
	k.mu.Unlock()
	var list []leaving
	for _, x := range kept {
		x.gone = x.gone || k.cfg.Hold > 0 && k.cfg.Now().Sub(time.UnixMilli(x.KeptMs)) >= k.cfg.Hold
		wanted := !x.gone && k.cfg.Wanted(x.ref)
		left := !x.gone && !wanted && k.cfg.Left(x.ref)
		if left {
			k.leave(x.Entry)
		}
		if !wanted && !left {
			list = append(list, x)
		}
	}
	k.drop(ctx, list)
}

// leave notes that nobody waits for an entry.
func (k *Keeper) leave(e *Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.left = true
}

// leaving is an entry that is, or may be, removed.
type leaving struct {
	ref command.AttemptRef
	*Entry
	gone bool // its owner may still ask for it
}

// drop removes the outputs of attempts.
func (k *Keeper) drop(ctx context.Context, list []leaving) {
	for part := range slices.Chunk(list, maxDropped) {
		writes := make([]record.Write, len(part))
		for i, x := range part {
			writes[i] = record.Tidy(record.BucketOutgoing, []byte(x.ID.String()))
		}
		if k.cfg.Record(ctx, writes) != nil {
			return // it ends
		}
		for _, x := range part {
			k.forget(x)
			k.cfg.Store.Unpin(PinOf(x.ID))
		}
	}
}

// forget removes an entry from memory, and remembers that its time is over if its owner may still ask for it.
func (k *Keeper) forget(x leaving) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.by, x.ref)
	k.names.drop(x.ref)
	if !x.gone || k.gone[x.ref] {
		return
	}
	k.gone[x.ref] = true
	if k.oldest = append(k.oldest, x.ref); len(k.oldest) > maxGone {
		delete(k.gone, k.oldest[0])
		k.oldest = k.oldest[1:]
	}
}
