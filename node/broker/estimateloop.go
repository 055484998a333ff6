package broker

import (
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/estimate"
	"github.com/cloudshare/cloudshare/node/plausible"
	"github.com/cloudshare/cloudshare/node/replica"
)

const (
	// estimateEvery is how often estimates learn from what happened.
	estimateEvery = time.Second
	// estimatesFile is in the data directory.
	estimatesFile = "estimates.json"
	// estimatesKeptEvery bounds what a crash costs of what was learnt.
	estimatesKeptEvery = 5 * time.Minute
)

// estimateKeeper has estimates of starts learn from the log's events, and remembers them
// over restarts. The watch on what sites report learns beside them, since the start alone.
type estimateKeeper struct {
	*process
	replica   *replica.Replica
	estimates *estimate.Estimator
	plausible *plausible.Watch
	current   <-chan struct{} // closed once the state is current
	subscribe func(node.EventID, node.EventFilter) *replica.Subscription
	path      string // where they are kept, "" = nowhere
}

// run feeds the estimates from the events of the log, aside from the
// broker's own loop. It begins once the state is current: of a log that is read
// again only the ends are seen, not how long machines were in use in between,
// and rates made of these would be far too high.
func (e *estimateKeeper) run() {
	select {
	case <-e.current:
	case <-e.ctx.Done():
		return
	}
	sub := e.subscribe(e.replica.Feed().Now(), node.EventFilter{Kinds: map[fsm.EventKind]bool{
		fsm.EventJobSubmitted: true, fsm.EventTaskAssigned: true, fsm.EventTaskEnded: true,
		fsm.EventTaskRequeued: true, fsm.EventTaskHeld: true, fsm.EventJobEnded: true,
		fsm.EventTaskStarted: true, fsm.EventSiteForgotten: true,
	}})
	e.load()
	defer e.save()
	tick, keep := time.NewTicker(estimateEvery), time.NewTicker(estimatesKeptEvery)
	defer tick.Stop()
	defer keep.Stop()
	for {
		select {
		case <-tick.C:
			e.learn(sub)
		case <-keep.C:
			e.save()
		case <-e.ctx.Done():
			return
		}
	}
}

// learn takes the events that have come. Lost ones are only a little less known.
func (e *estimateKeeper) learn(sub *replica.Subscription) {
	// First, for it must know of an outage before it hears of the runs that went on meanwhile.
	e.replica.View(func(s *fsm.State) { e.plausible.Sample(s, time.Now()) })
	for {
		events, more, err := sub.Look()
		for i := range events {
			if ev := &events[i]; ev.ID.Home == 0 {
				e.estimates.Observe(&ev.Event)
				e.plausible.Observe(&ev.Event)
			}
		}
		if err == nil && more != nil {
			break
		}
		if e.ctx.Err() != nil {
			return
		}
	}
	e.replica.View(e.estimates.Sample)
}

// load takes what the last start has left. REQUIRES: the state is current.
func (e *estimateKeeper) load() {
	if e.path == "" {
		return
	}
	var now int64
	e.replica.View(func(s *fsm.State) { now = s.Time() })
	if err := e.estimates.Load(e.path, now); err != nil {
		e.log.Warn().Err(err).Str("file", e.path).Msg("estimates unreadable; starting over")
	}
}

// save writes what was learnt, if there is anything new.
func (e *estimateKeeper) save() {
	if e.path == "" {
		return
	}
	if err := e.estimates.Save(e.path); err != nil {
		e.log.Warn().Err(err).Msg("after a restart the estimates may start over")
	}
}

// KeepEstimates has the broker remember in a data directory how its estimates
// came out and what they learn from, over restarts. It is called before Start.
func (b *Broker) KeepEstimates(dir string) { b.estimates.path = filepath.Join(dir, estimatesFile) }
