package broker

import (
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
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

// estimateLoop feeds the estimates from the events of the log, aside from the
// broker's own loop. It begins once the state is current: of a log that is read
// again only the ends are seen, not how long machines were in use in between,
// and rates made of these would be far too high.
func (b *Broker) estimateLoop() {
	select {
	case <-b.current:
	case <-b.ctx.Done():
		return
	}
	sub := b.Events(b.Feed().Now(), node.EventFilter{Kinds: map[fsm.EventKind]bool{
		fsm.EventJobSubmitted: true, fsm.EventTaskAssigned: true, fsm.EventTaskEnded: true,
		fsm.EventTaskRequeued: true, fsm.EventJobEnded: true,
	}})
	b.loadEstimates()
	defer b.saveEstimates()
	tick, keep := time.NewTicker(estimateEvery), time.NewTicker(estimatesKeptEvery)
	defer tick.Stop()
	defer keep.Stop()
	for {
		select {
		case <-tick.C:
			b.learn(sub)
		case <-keep.C:
			b.saveEstimates()
		case <-b.ctx.Done():
			return
		}
	}
}

// learn takes the events that have come. Lost ones are only a little less known.
func (b *Broker) learn(sub *replica.Subscription) {
	for {
		events, more, err := sub.Look()
		for i := range events {
			if e := &events[i]; e.ID.Home == 0 {
				b.estimates.Observe(&e.Event)
			}
		}
		if err == nil && more != nil {
			break
		}
		if b.ctx.Err() != nil {
			return
		}
	}
	b.cfg.Replica.View(b.estimates.Sample)
}

// Calibration tells how this broker's latest estimates came out.
func (b *Broker) Calibration() node.Calibration { return b.estimates.Calibration() }

// KeepEstimates has the broker remember in a data directory how its estimates
// came out and what they learn from, over restarts. It is called before Start.
func (b *Broker) KeepEstimates(dir string) { b.estimatesPath = filepath.Join(dir, estimatesFile) }

// loadEstimates takes what the last start has left. REQUIRES: the state is current.
func (b *Broker) loadEstimates() {
	if b.estimatesPath == "" {
		return
	}
	var now int64
	b.cfg.Replica.View(func(s *fsm.State) { now = s.Time() })
	if err := b.estimates.Load(b.estimatesPath, now); err != nil {
		b.cfg.Logger.Warn().Err(err).Str("file", b.estimatesPath).Msg("estimates unreadable; starting over")
	}
}

// saveEstimates writes what was learnt, if there is anything new.
func (b *Broker) saveEstimates() {
	if b.estimatesPath == "" {
		return
	}
	if err := b.estimates.Save(b.estimatesPath); err != nil {
		b.cfg.Logger.Warn().Err(err).Msg("after a restart the estimates may start over")
	}
}
