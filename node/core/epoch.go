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
	c.entering.epoch, c.expelled = ev.Epoch, true
	c.reports.Clear()
}

// epochEntry is the epoch that this site enters, and what it must know of it.
type epochEntry struct {
	site     string
	attempts *attempts.Book
	epoch    uint64 // 0 = none: the site is ready for the one that it was registered in
}

// finish notes that this site is ready for the epoch.
func (e *epochEntry) finish(fx *Effects) {
	if e.epoch != 0 {
		fx.Writes = append(fx.Writes, record.Put(record.BucketMeta, record.KeyEpoch, record.Number(e.epoch)))
		e.epoch = 0
	}
}

// isUnknown reports whether the state of the epoch does not know an attempt here.
func (e *epochEntry) isUnknown(a *attempts.Attempt, s StateReader) bool {
	if e.epoch == 0 {
		return false
	}
	ref, err := e.attempts.Ref(a.ID)
	if err != nil {
		return true
	}
	_, known := s.Assignment(e.site, ref)
	return !known
}
