package leftover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/delivery"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Source is the state of the federation, as far as it says what tasks have left.
type Source interface {
	// Jobs lists some of this site's jobs with outputs, and the place to go on from, 0 behind the last; it begins at 0.
	Jobs(before uint64) (jobs []command.JobID, next uint64)
	// Left lists what some of a job's tasks have left at other sites that did not succeed, and the place to go on from,
	// 0 behind the last; it begins at 0.
	Left(job command.JobID, from uint32) (list []fsm.Delivery, next uint32)
	// Now is log time in milliseconds.
	Now() int64
	// Where returns a site's peer address, "" = it has none, and the state's entry.
	Where(site string) (addr string, entry uint64)
}

// Config of a fetcher.
type Config struct {
	Site      string
	Source    Source
	Results   *results.Book
	Transfers transfer.Puller
	// Loop is how it fetches: Store, Full, Wait and Logger; the rest is the fetcher's to say.
	Loop delivery.Config
	// WantedOf returns what the job of an attempt that has run at a site wants of what it left. Errors:
	// delivery.ErrUnwanted, else it cannot be said now.
	WantedOf func(site string, ref command.AttemptRef) (delivery.Wanted, error)
	Events   func(from node.EventID, filter node.EventFilter) *replica.Subscription
	Now      func() node.EventID // the feed's place
	// Position returns the number in the state of the task of an index.
	Position func(job command.JobID, index uint32) uint32
}

// Fetcher brings home what is left of tasks.
type Fetcher struct {
	cfg  Config
	list *list
	loop *delivery.Loop
	ctx  context.Context //nolint:containedctx // Run's, for what its loop says
	// sweeping: the state is being looked through, so that what is not known yet may come.
	sweeping atomic.Bool
	wg       sync.WaitGroup // of Run
	releases releases
}

// New returns a fetcher, for Run.
func New(cfg Config) *Fetcher {
	f := &Fetcher{cfg: cfg, list: newList(cfg.Source), ctx: context.Background(), releases: newReleases()}
	c := cfg.Loop
	c.Results, c.Transfers, c.State = cfg.Results, cfg.Transfers, f.list
	c.Pins, c.Pace, c.Say, c.WantedOf = "leftover", delivery.Idle, f.settle, f.wantedOf
	f.loop = delivery.New(c)
	f.sweeping.Store(true) // until the first one is over
	return f
}

// Run fetches until ctx ends. It is called once, when the state is as new as the federation's.
func (f *Fetcher) Run(ctx context.Context) {
	f.ctx = ctx
	defer f.wg.Wait()
	sub := f.cfg.Events(f.cfg.Now(), node.EventFilter{
		Site: f.cfg.Site, Kinds: map[fsm.EventKind]bool{fsm.EventTaskEnded: true},
	})
	f.list.sweepLater()
	f.wg.Go(func() { f.loop.Run(ctx) })
	f.wg.Go(func() { f.sweepLoop(ctx) })
	for {
		events, err := sub.Next(ctx)
		switch {
		case errors.Is(err, node.ErrEventsLost):
			f.list.sweepLater()
		case err != nil:
			return
		}
		for i := range events {
			f.take(&events[i])
		}
	}
}

// take notes what an event says was left elsewhere by a task that did not succeed.
func (f *Fetcher) take(e *node.Event) {
	failed := e.End == fsm.EndFailed || e.End == fsm.EndCancelled
	elsewhere := e.Job.Site == f.cfg.Site && e.Site != "" && e.Site != f.cfg.Site && e.ID.Home == 0
	if !failed || !elsewhere || e.Attempt == 0 || e.Count != 1 || e.Output.IsZero() {
		return
	}
	d := fsm.Delivery{
		AttemptRef: command.AttemptRef{
			Job: e.Job, Task: f.cfg.Position(e.Job, e.Task), Attempt: e.Attempt, Token: e.Token,
		},
		Site: e.Site, Output: e.Output, SinceMs: e.Time,
	}
	if !f.list.add(d) {
		f.list.sweepLater() // when there is room
	}
}

// sweepLoop looks through the state whenever something may have been missed.
func (f *Fetcher) sweepLoop(ctx context.Context) {
	for f.list.awaitSweep(ctx) {
		f.sweeping.Store(true)
		f.sweep(ctx)
		f.sweeping.Store(false)
	}
}

func (f *Fetcher) sweep(ctx context.Context) {
	for before := uint64(0); ; {
		var jobs []command.JobID
		jobs, before = f.cfg.Source.Jobs(before)
		for _, id := range jobs {
			if !f.sweepJob(ctx, id) {
				return
			}
		}
		if before == 0 {
			return
		}
	}
}

// sweepJob notes what of a job's tasks is not here; false: ctx has ended.
func (f *Fetcher) sweepJob(ctx context.Context, id command.JobID) bool {
	for from := uint32(0); ; {
		var found []fsm.Delivery
		found, from = f.cfg.Source.Left(id, from)
		for i := range found {
			if f.cfg.Results.Has(id.Num, resultOf(&found[i])) {
				continue
			}
			for !f.list.add(found[i]) {
				if !f.list.awaitRoom(ctx) {
					return false
				}
			}
		}
		if from == 0 {
			return ctx.Err() == nil
		}
	}
}

// resultOf returns what is kept of a task once its files are here.
func resultOf(d *fsm.Delivery) node.TaskResult {
	return node.TaskResult{
		Task: d.Task, Attempt: d.Attempt, Bytes: d.Output.Bytes,
		Manifest: files.Blob{Hash: d.Output.Manifest, Size: d.Output.Size},
	}
}

// wantedOf returns what is wanted of what an attempt left: whatever is there.
func (f *Fetcher) wantedOf(ref command.AttemptRef) (w delivery.Wanted, err error) {
	d, open := f.list.get(ref)
	if !open {
		return w, delivery.ErrUnwanted
	}
	if w, err = f.cfg.WantedOf(d.Site, ref); err == nil {
		w.Outputs.Optional = append(w.Outputs.Paths, w.Outputs.Optional...)
		w.Outputs.Paths = nil
	}
	return w, err
}

// settle notes what became of some, and has their site told that they may go. It does not wait for that.
func (f *Fetcher) settle(said []command.Delivered, done func(command.Code)) {
	at := map[string][]transfer.Blob{}
	for i := range said {
		d, open := f.list.settle(&said[i])
		if open {
			at[d.Site] = append(at[d.Site], transfer.Blob{
				Attempt: d.AttemptRef, What: transfer.Release, Hash: d.Output.Manifest, Size: 1,
			})
		}
	}
	for site, blobs := range at {
		if f.releases.add(site, blobs) { // one at a time to each site
			f.wg.Go(func() { f.releaseAll(site) })
		}
	}
	done(command.OK)
}

// newsWithin is how long after its end what a task left is taken to be on its way, though no event has told of it yet.
const newsWithin = 10 * time.Second

// Away says at a log time why what is left of a task that ended without success is not here, if it is not.
func (f *Fetcher) Away(d *fsm.Delivery, nowMs int64) node.FilesAway {
	open, why := f.list.find(d.AttemptRef)
	fetched := fmt.Sprintf("its files are at %s, and are fetched", d.Site)
	switch {
	case open:
		return node.FilesAway{Why: cmp.Or(f.loop.Why(d.AttemptRef), fetched), Coming: true}
	case why != "":
		return node.FilesAway{Why: "its files were not brought home: " + why}
	case f.cfg.Results.Has(d.Job.Num, resultOf(d)):
		return node.FilesAway{}
	case f.sweeping.Load() || nowMs-d.SinceMs < newsWithin.Milliseconds():
		return node.FilesAway{Why: fetched, Coming: true}
	}
	return node.FilesAway{Why: "its files are not here: they were at " + d.Site}
}
