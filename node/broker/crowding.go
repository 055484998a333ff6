package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/broker/diskspace"
	"github.com/cloudshare/cloudshare/node/core"
)

const (
	// crowdEvery is how often it is looked whether other sites' tasks fill the disk.
	crowdEvery = time.Second
	// leastOver is how much one must have beyond what was reserved for it: to end others frees next to nothing.
	leastOver = 1 << 20
	// endsWithin is how long the files of one that was told to end, and has, may take to go until the next one is told.
	endsWithin = 5 * time.Second
	// stuckAfter is how long one may take to end.
	stuckAfter = time.Minute
	// weighWithin bounds a look at what all of them have.
	weighWithin = 20 * time.Second
)

// crowding keeps other sites' tasks from filling the disk together, each within its own bound: while less than min_free
// is left and no file in the cache may go, the one ends that has most beyond what was reserved for its outputs. For its
// task that is a loss, as an eviction by a kubelet is, and this site offers nothing meanwhile.
type crowding struct {
	*process
	disk     *diskspace.Watch
	handlers map[string]executor.Handler
	rest     time.Duration // endsWithin, but for tests

	mu     sync.Mutex  // one look at a time
	ending executor.ID // which was told to end last
	told   time.Time   // when it was
	gone   time.Time   // when it was last seen running: what it had may be there for a moment yet
}

// lodger is an attempt of another site's task.
type lodger struct {
	core.HandlerID
	reserved int64 // bytes for its outputs
	over     int64 // what it has beyond
}

// run looks again and again, until the broker ends.
func (c *crowding) run() {
	tick := time.NewTicker(crowdEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.look()
		case <-c.ctx.Done():
			return
		}
	}
}

// look looks once.
func (c *crowding) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.disk.Full() == nil || c.disk.Room() >= 0 || time.Since(c.gone) < c.rest {
		return
	}
	worst, ok := c.worst()
	if !ok || worst.over < leastOver {
		return
	}
	c.ending, c.told, c.gone = worst.ID, time.Now(), time.Now()
	why := fmt.Sprintf("the disk of its site is full, and it had most there of all other sites' tasks: %d MiB more than "+
		"was reserved for its outputs", worst.over>>20)
	c.log.Warn().Stringer("attempt", worst.ID).Int64("bytes", worst.over).
		Msg("the disk has less than min_free: the task of another site that has most on it is ended")
	if err := c.handlers[worst.Handler].Stop(c.ctx, worst.ID, why); err != nil && c.ctx.Err() == nil {
		c.log.Warn().Err(err).Stringer("attempt", worst.ID).Msg("it could not be stopped, and is looked at again")
	}
}

// worst returns which one has most beyond what was reserved for it. It does not if that of some is not known, or if the
// one that was told to end is there yet.
func (c *crowding) worst() (worst lodger, ok bool) {
	ctx, cancel := context.WithTimeout(c.ctx, weighWithin)
	defer cancel()
	list, err := c.lodgers(ctx)
	if err != nil {
		return worst, false // a stopping broker ends nobody
	}
	if time.Since(c.told) < stuckAfter && slices.ContainsFunc(list, func(l lodger) bool { return l.ID == c.ending }) {
		c.gone = time.Now()
		return worst, false
	}
	for _, l := range list {
		h, weighs := c.handlers[l.Handler].(executor.Weigher)
		if !weighs {
			continue
		}
		if l.over = h.Weigh(ctx, l.ID) - l.reserved; l.over > worst.over {
			worst = l
		}
	}
	return worst, ctx.Err() == nil
}

func (c *crowding) lodgers(ctx context.Context) (list []lodger, err error) {
	var found []lodger // not list: on an error the question may be answered yet
	err = c.query(ctx, func(k *core.Core) {
		for a := range k.Lent() {
			l := lodger{HandlerID: core.HandlerID{Handler: a.Handler, ID: a.ID}}
			if a.Outputs.Wanted() {
				l.reserved = a.Outputs.MaxBytes
			}
			found = append(found, l)
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
