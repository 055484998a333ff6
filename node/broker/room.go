package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/diskspace"
	"github.com/cloudshare/cloudshare/node/broker/stageout"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files/store"
)

const (
	// roomEvery is how often it is looked what room there is.
	roomEvery = time.Second
	// raiseLooks is at how many of these looks in a row there must be room for a larger class before it is offered:
	// each other offer costs the federation an entry, and lifts the bars of what was declined.
	raiseLooks = 10
	// maxShort bounds the jobs of which is known what room they lack. Others are tried again now and then.
	maxShort = 4096
)

// roomKeeper keeps room for what tasks with files take and leave before they begin, has offers promise no more than
// there is, and tells when a task that was declined would have room. Promises are the store's, by the names of the
// attempts' pins: they go with the attempt (forget), and are made again at a start.
type roomKeeper struct {
	*process
	site    string
	store   *store.Store
	disk    *diskspace.Watch
	lendMax int64
	// leftovers are what failed tasks left here for their owners: they go when room is wanted.
	leftovers *stageout.Keeper

	mu sync.Mutex
	// short has what jobs lacked that were declined.
	short map[command.JobID]*store.ShortError
	offer offeredRoom
}

func newRoomKeeper(b *Broker) *roomKeeper {
	return &roomKeeper{
		process: b.process, site: b.cfg.Site, store: b.cfg.Files, disk: b.disk, lendMax: b.cfg.Data.LendMax,
		short: map[command.JobID]*store.ShortError{},
	}
}

// reserve keeps room for what an attempt may leave. That of this site's own is kept whether there is any or not: it
// waits for room at its end, and meanwhile counts when others' tasks come.
func (r *roomKeeper) reserve(st *core.StartEffect) error {
	n := st.Task.Outputs.MaxBytes
	switch {
	case !st.Task.Outputs.Wanted():
	case st.Task.Owner == r.site:
		r.store.KeepBytes(stageout.PinOf(st.ID), store.Own, n)
	default:
		if err := r.reserveOutgoing(st.ID, n); err != nil {
			return fmt.Errorf("its outputs may take %d bytes: %w", n, err)
		}
	}
	return nil
}

// reserveOutgoing keeps room for n bytes of outputs; what failed tasks left goes for them, as much as it takes, if that
// makes room enough.
func (r *roomKeeper) reserveOutgoing(id executor.ID, n int64) error {
	for {
		err := r.store.ReserveBytes(stageout.PinOf(id), store.Outgoing, n, r.disk.Room())
		var short *store.ShortError
		if !errors.As(err, &short) {
			return err
		}
		if freed, bad := r.leftovers.LetGo(r.ctx, short.Lacks); freed == 0 || bad != nil {
			return errors.Join(err, bad)
		}
	}
}

// refused notes what room an attempt lacks, if that is what err says. REQUIRES: the core was told first.
func (r *roomKeeper) refused(id executor.ID, err error) {
	var short *store.ShortError
	ref, bad := node.AttemptOf(id)
	if bad != nil || !errors.As(err, &short) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.short) < maxShort || r.short[ref.Job] != nil {
		r.short[ref.Job] = short
	}
}

// release ends what is kept for an attempt; it may be called again.
func (r *roomKeeper) release(id executor.ID) { r.store.Release(stageout.PinOf(id)) }

// recover keeps room for an attempt that an earlier life of the broker has started.
func (r *roomKeeper) recover(a *attempts.Record) {
	space := store.Outgoing
	if ref, err := node.AttemptOf(a.ID); err == nil && ref.Job.Site == r.site {
		space = store.Own
	}
	r.store.KeepBytes(stageout.PinOf(a.ID), space, a.Outputs.MaxBytes)
}

// run looks again and again what room there is, until the broker ends.
func (r *roomKeeper) run() {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if ev, news := r.look(); news {
				r.post(ev)
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// look looks once; news: the core is to hear of it.
func (r *roomKeeper) look() (ev core.RoomEvent, news bool) {
	free := r.disk.Room()
	lent := r.lent(free)
	r.mu.Lock()
	defer r.mu.Unlock()
	for job, short := range r.short {
		if r.store.Fits(short, free) {
			ev.Fit = append(ev.Fit, job)
			delete(r.short, job)
		}
	}
	news = r.offer.see(lent) || len(ev.Fit) > 0
	ev.Room = r.offer.room
	return ev, news
}

// offeredRoom is what offers promise: less at once, more when there was more for a while.
type offeredRoom struct {
	room  int64
	looks int // in a row that saw more
	least int64
}

// see takes what a look has seen, and reports whether what is offered changes.
func (o *offeredRoom) see(room int64) bool {
	switch {
	case room <= o.room:
		o.looks = 0
		changed := room < o.room
		o.room = room
		return changed
	case o.looks == 0:
		o.least = room
	}
	o.least = min(o.least, room)
	if o.looks++; o.looks < raiseLooks {
		return false
	}
	o.room, o.looks = o.least, 0
	return true
}

// begin looks before the first offer is made, and returns what that may promise.
func (r *roomKeeper) begin() int64 {
	r.offer.room = r.lent(r.disk.Room())
	return r.offer.room
}

// lent returns how much may be promised with so much free.
func (r *roomKeeper) lent(free int64) int64 {
	now, ever := r.store.Room(free, r.leftovers.Spare())
	return command.FilesLent(now, min(ever, r.lendMax))
}

// unroomed says to the core that there is no room for what an attempt may leave.
func (r *roomKeeper) unroomed(id executor.ID, err error) {
	r.log.Info().Err(err).Stringer("attempt", id).Msg("there is no room for what a task may leave: it is not started")
	r.post(core.UnstagedEvent{ID: id, Fault: inputs.Full, Why: err.Error()})
	r.refused(id, err)
}
