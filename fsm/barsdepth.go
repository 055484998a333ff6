package fsm

import (
	"cmp"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// depth records how far down a lane one site has searched past queues whose jobs are all barred from it.
// A lane has as many queues as jobs if each job has its own order; no queue is passed twice. It is
// derived, and exact, as a gate is within a queue.
type depth struct {
	site   int32
	offers uint64 // the site's count; a depth with another count is void
	order  int32  // Invariant: each waiting job of a greater order is barred from the site
}

func (l *lane) findDepth(site int32) (int, bool) {
	return slices.BinarySearchFunc(l.depths, site, func(d depth, id int32) int { return cmp.Compare(d.site, id) })
}

// begin returns the place of the first queue that may have a job for a site.
func (l *lane) begin(x *site) store.Place {
	if i, ok := l.findDepth(x.id); ok && l.depths[i].offers == x.offers {
		return l.seekQueue(l.depths[i].order)
	}
	return store.Place{}
}

// deepen records that all jobs before a queue are barred from a site; nil means the end of the lane.
func (l *lane) deepen(x *site, q *queue) {
	d := depth{x.id, x.offers, math.MinInt32}
	if q != nil {
		d.order = q.order
	}
	i, ok := l.findDepth(x.id)
	if !ok {
		l.depths = slices.Insert(l.depths, i, d)
		return
	}
	l.depths[i] = d
}

// admit updates the depths for a job that begins to wait.
func (l *lane) admit(s *jobTable, j *job) {
	if len(l.depths) == 0 {
		return
	}
	l.depths = slices.DeleteFunc(l.depths, func(d depth) bool { return d.offers != s.sites[d.site].offers })
	bars := barWalk(j.tasks.bars())
	for i := range l.depths {
		if d := &l.depths[i]; d.order < j.order && !bars.isBarred(s.sites[d.site]) {
			d.order = j.order
		}
	}
}
