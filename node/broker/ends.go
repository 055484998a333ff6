package broker

import (
	"errors"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/replica"
)

// endWatch tells the core which jobs of this site have ended, so that what waits for them begins at once. What it
// misses the core finds by itself, later.
type endWatch struct {
	*process
	site      string
	feed      *replica.Feed
	subscribe func(node.EventID, node.EventFilter) *replica.Subscription
}

// run tells of ends until the broker ends.
func (w *endWatch) run() {
	sub := w.subscribe(w.feed.Now(), node.EventFilter{
		Site: w.site, Kinds: map[fsm.EventKind]bool{fsm.EventJobEnded: true},
	})
	for w.ctx.Err() == nil {
		events, err := sub.Next(w.ctx)
		if err != nil && !errors.Is(err, node.ErrEventsLost) {
			return
		}
		var nums []uint64
		for i := range events {
			if job := events[i].Job; job.Site == w.site && events[i].ID.Home == 0 {
				nums = append(nums, job.Num)
			}
		}
		if len(nums) > 0 && !w.post(core.JobsEndedEvent{Nums: nums}) {
			return
		}
	}
}
