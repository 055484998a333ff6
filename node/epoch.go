package node

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
)

// A federation that was recovered from the loss of its quorum is in a new epoch
// (fsm.Recover), and may have forgotten its newest entries. This site may run what
// one of them assigned: the state does not know the attempt and thinks that its
// task waits. What the state gives to others once this site is back must not run
// here any more. So before a site registers for the first time in an epoch, it ends
// what runs for other sites, whose leases are over anyway, and what of its own
// tasks the state does not know. What it has promised alone (journaled jobs, home
// runs) stays.

var keyEpoch = []byte("epoch")

// ErrOldEpoch means that this site has been in a later epoch of the federation than the log
// that it was started on. Somebody names a backend, or a copy of its data, that
// the federation has left.
var ErrOldEpoch = errors.New("the federation has left this log")

// epochEvent: the state is in another epoch than this site was registered in.
type epochEvent struct{ epoch uint64 }

func (epochEvent) isEvent() {}

// epoch is the one that this site was last ready for.
func (j *Journal) epoch() uint64 { return decodeNumber(j.get(bucketMeta, keyEpoch)) }

// newEpoch reports whether the site must settle with a new epoch before it
// registers: it is presented again when it has. In an old one it is not at all. REQUIRES: the state is current.
func (b *Broker) newEpoch() bool {
	var epoch uint64
	b.cfg.Replica.View(func(s *fsm.State) { epoch = s.Epoch() })
	switch was := b.epoch.Swap(epoch); {
	case was == epoch:
		return false
	case was > epoch:
		b.fail(fmt.Errorf("%w: it is of epoch %d, and this site was in epoch %d: start it with the configuration and the data that it had there", ErrOldEpoch, epoch, was))
		return true
	}
	b.cfg.Logger.Info().Uint64("epoch", epoch).Msg("the federation was recovered since this site was last here, or the site is new")
	b.post(epochEvent{epoch})
	return true
}

// enter begins to settle with an epoch; expel does it.
func (c *core) enter(ev epochEvent) {
	c.entering, c.expelled = ev.epoch, true
	c.ends, c.started = c.ends[:0], c.started[:0]
}

// entered notes that this site is ready for the epoch.
func (c *core) entered(fx *effects) {
	if c.entering != 0 {
		fx.writes = append(fx.writes, put(bucketMeta, keyEpoch, number(c.entering)))
		c.entering = 0
	}
}

// strange reports whether the state, in an epoch that this site enters, does not
// know an attempt here.
func (c *core) strange(a *attempt, s stateReader) bool {
	if c.entering == 0 {
		return false
	}
	ref, err := c.last.attemptRef(a.ID)
	if err != nil {
		return true
	}
	_, known := s.Assignment(c.site, ref)
	return !known
}
