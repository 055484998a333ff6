package broker

import (
	"fmt"
	"math"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/delivery"
	"github.com/cloudshare/cloudshare/node/broker/homelogs"
	"github.com/cloudshare/cloudshare/node/broker/leftover"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// bringLeftovers makes what brings home the files of this site's tasks that failed elsewhere.
func (k *ownFiles) bringLeftovers() {
	cfg := &k.b.cfg
	wait := cfg.Data.Hold // what other sites do is not known: as this one does
	if wait == 0 {
		wait = math.MaxInt64
	}
	k.leftover = leftover.New(leftover.Config{
		Site: cfg.Site, Source: leftover.StateOf(cfg.Site, cfg.Replica), Results: k.results, Transfers: k.b.moved,
		Loop:     delivery.Config{Store: cfg.Files, Full: k.noRoomForLeftovers, Wait: wait, Logger: cfg.Logger},
		WantedOf: k.leftoverWanted, Events: k.b.Events, Now: k.b.Feed().Now,
		Position: homelogs.StateOf(cfg.Site, cfg.Replica).Position,
	})
}

// leftoverRoom is the part of the quota that what failed tasks left may fill: the rest is for what tasks wait for.
const leftoverRoom, leftoverOf = 7, 8

// noRoomForLeftovers returns why so many bytes more of what failed tasks left may not be written, or nil.
func (k *ownFiles) noRoomForLeftovers(bytes int64) error {
	if err := k.b.disk.Full(); err != nil {
		return err
	}
	u := k.store.Usage(store.Own)
	if most := u.Max / leftoverOf * leftoverRoom; u.Bytes > most-bytes {
		return fmt.Errorf("%w: %d more bytes and the %d in use are more than the %d that files of failed tasks may fill (%d/%d "+
			"of data.own)", store.ErrFull, bytes, u.Bytes, most, leftoverRoom, leftoverOf)
	}
	return nil
}

// leftoverWanted says what the job of an attempt wants of what it left at a site: the state has its task as ended
// without success by that attempt, its job keeps that, and the time of its results is not over.
func (k *ownFiles) leftoverWanted(site string, ref command.AttemptRef) (w delivery.Wanted, err error) {
	left, endedMs := false, int64(-1)
	k.b.cfg.Replica.View(func(s *fsm.State) {
		if left = s.OutputsLeft(site, ref); left {
			v, _ := s.Job(ref.Job)
			endedMs = v.EndedMs
		}
	})
	if !left {
		return w, fmt.Errorf("%w: by the state, they are not what is left of a task", delivery.ErrUnwanted)
	}
	keep, ended := k.b.cfg.Data.KeepResults, k.b.cfg.Replica.WallOf(endedMs, time.Time{})
	if keep > 0 && !ended.IsZero() && time.Since(ended) > keep {
		return w, fmt.Errorf("%w: results are kept for %s (data.keep_results)", delivery.ErrUnwanted, keep)
	}
	if w, err = k.wanted(ref); err == nil && w.Outputs.When != executor.WhenAlways {
		err = fmt.Errorf("%w: its job keeps nothing of tasks that fail", delivery.ErrUnwanted)
	}
	return w, err
}

// leftoverAway says at a log time why what is left at another site of a task that ended without success is not here.
func (b *Broker) leftoverAway(left *fsm.Delivery, nowMs int64) node.FilesAway {
	if b.owned == nil {
		return node.FilesAway{}
	}
	return b.owned.leftover.Away(left, nowMs)
}
