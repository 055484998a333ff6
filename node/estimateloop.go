package node

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

const (
	// estimateEvery is how often estimates learn from what happened.
	estimateEvery = time.Second
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
	sub := b.Events(b.Feed().Now(), EventFilter{Kinds: map[fsm.EventKind]bool{
		fsm.EventJobSubmitted: true, fsm.EventTaskAssigned: true, fsm.EventTaskEnded: true,
		fsm.EventTaskRequeued: true, fsm.EventJobEnded: true,
	}})
	b.recallEstimates()
	defer b.noteEstimates()
	tick, keep := time.NewTicker(estimateEvery), time.NewTicker(estimatesKeptEvery)
	defer tick.Stop()
	defer keep.Stop()
	for {
		select {
		case <-tick.C:
			b.learn(sub)
		case <-keep.C:
			b.noteEstimates()
		case <-b.ctx.Done():
			return
		}
	}
}

// learn takes the events that have come. Lost ones are only a little less known.
func (b *Broker) learn(sub *Subscription) {
	for {
		events, more, err := sub.look()
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
func (b *Broker) Calibration() Calibration { return b.estimates.Calibration() }
