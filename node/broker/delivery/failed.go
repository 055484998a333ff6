package delivery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// maxStrikes is how often a site may send something else than it said.
const maxStrikes = 2

func isIncomplete(err error) bool { return errors.Is(err, results.ErrNotWhole) }

// failed decides what becomes of a delivery that did not come: it is tried again, or is over.
func (r *round) failed(f *fetched) {
	var over *finalError
	var refused *transfer.RefusedError
	err := f.err
	switch {
	case r.ctx.Err() != nil || f.ctx.Err() != nil:
	case errors.As(err, &over) && over.failed:
		r.say(f.delivery, command.DeliveryFailed, err.Error())
	case errors.As(err, &over):
		r.lost(f, err)
	case errors.As(err, &refused) && !refused.Temporary():
		r.lost(f, refused.Refusal)
	case errors.Is(err, errOther), errors.Is(err, transfer.ErrPeer):
		if f.strikes++; f.strikes >= maxStrikes { // this worker alone has it
			r.lost(f, err)
			return
		}
		r.retry(f, err)
	case errors.Is(err, store.ErrFull):
		r.waitForRoom(f)
	case refused != nil, errors.Is(err, transfer.ErrUnreachable), errors.Is(err, transfer.ErrStalled):
		r.waitForSite(f, err)
	default:
		r.retry(f, err)
	}
}

// lost gives up what its site cannot give.
func (r *round) lost(f *fetched, why any) {
	r.say(f.delivery, command.DeliveryLost, fmt.Sprintf("its outputs are lost at %s: %v", f.Site, why))
}

// waitForSite has a delivery tried again, unless nothing of it came for too long.
func (r *round) waitForSite(f *fetched, err error) {
	silent := time.Duration(r.cfg.State.Now()-f.movedMs.Load()) * time.Millisecond
	if silent < r.cfg.Wait {
		r.retry(f, fmt.Errorf("%w; they are lost if nothing comes within %s", err,
			(r.cfg.Wait-silent).Round(time.Second)))
		return
	}
	r.lost(f, fmt.Errorf("nothing of them came for %s: %w", silent.Round(time.Second), err))
}

// giveUp gives up what waits for its turn, and did so for too long, if its site could not be reached.
func (r *round) giveUp() {
	if r.away == nil || r.ctx.Err() != nil {
		return
	}
	now := r.cfg.State.Now()
	var over []*delivery
	old := func(d *delivery) bool {
		if time.Duration(now-d.movedMs.Load())*time.Millisecond < r.cfg.Wait {
			return false
		}
		over = append(over, d)
		return true
	}
	r.mu.Lock()
	if s := r.sites[r.site]; s != nil {
		s.fresh, s.later = slices.DeleteFunc(s.fresh, old), slices.DeleteFunc(s.later, old)
	}
	r.mu.Unlock()
	for _, d := range over {
		r.lost(&fetched{delivery: d}, r.away)
	}
}

// waitForRoom has a delivery tried again however long it takes: they are not to be lost for this site's disk.
func (r *round) waitForRoom(f *fetched) {
	r.mu.Lock()
	first := !r.full
	r.full = true
	r.mu.Unlock()
	if first {
		r.cfg.Logger.Error().Err(f.err).Msg("outputs of this site's tasks wait at the sites that ran them: give this site's " +
			"store of files more room (data.own), or free the disk")
	}
	r.retry(f, f.err)
}

// retry has a delivery tried again.
func (r *round) retry(f *fetched, err error) {
	why := fmt.Sprintf("its outputs are at %s, and are fetched again: %v", f.Site, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(r.ctx, f.delivery, command.Clip(why))
}
