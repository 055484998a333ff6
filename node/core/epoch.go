package core

import (
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/record"
)

// A federation that was recovered from the loss of its quorum is in a new epoch
// (command.Recover), and may have forgotten its newest entries. This site may run what
// one of them assigned: the state does not know the attempt and thinks that its
// task waits. What the state gives to others once this site is back must not run
// here any more. So before a site registers for the first time in an epoch, it ends
// what runs for other sites, whose leases are over anyway, and what of its own
// tasks the state does not know. What it has promised alone (journaled jobs, home
// runs) stays.

// EpochEvent says that the state is in another epoch than this site was registered in.
type EpochEvent struct{ Epoch uint64 }

func (EpochEvent) isEvent() {}

// beginEpoch begins to settle with an epoch; expel does it.
func (c *Core) beginEpoch(ev EpochEvent) {
	c.entering, c.expelled = ev.Epoch, true
	c.reports.Clear()
}

// finishEpoch notes that this site is ready for the epoch.
func (c *Core) finishEpoch(fx *Effects) {
	if c.entering != 0 {
		fx.Writes = append(fx.Writes, record.Put(record.BucketMeta, record.KeyEpoch, record.Number(c.entering)))
		c.entering = 0
	}
}

// unknownToState reports whether the state, in an epoch that this site enters, does not
// know an attempt here.
func (c *Core) unknownToState(a *attempts.Attempt, s StateReader) bool {
	if c.entering == 0 {
		return false
	}
	ref, err := c.attempts.Ref(a.ID)
	if err != nil {
		return true
	}
	_, known := s.Assignment(c.site, ref)
	return !known
}
