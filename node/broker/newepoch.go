package broker

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/core"
)

// ErrOldEpoch means that this site has been in a later epoch of the federation than the log
// that it was started on. Somebody names a backend, or a copy of its data, that
// the federation has left.
var ErrOldEpoch = errors.New("the federation has left this log")

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
	b.post(core.EpochEvent{Epoch: epoch})
	return true
}
