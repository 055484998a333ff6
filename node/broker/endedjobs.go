package broker

import (
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
)

const (
	// endedEvery is how often all jobs are looked up whose end is waited for: after a start one may be on its way to
	// the state still, which has its end already. 100,000 take some 10 ms.
	endedEvery = 10 * time.Second
	// endedLook bounds the jobs that are looked at in one go.
	endedLook = 1000
	// mostAccepted is how many jobs may be accepted between two looks before all are looked up instead.
	mostAccepted = 10_000
)

// endedJobs finds out which jobs of this site have ended, of those that somebody keeps a book of.
type endedJobs struct {
	*process
	b    *Broker
	book interface {
		Has(num uint64) bool // whether a job's end is waited for
		Unended() []uint64
	}
	// take is told of jobs that have ended, of one perhaps twice; late is what is logged if they could not be found, or
	// taken. All are looked up again then.
	take func(nums []uint64) error
	late string
	kept chan struct{} // has one while jobs were accepted that nobody has looked at

	mu       sync.Mutex
	accepted []uint64 // those, at most mostAccepted; guarded by mu
	more     bool     // there were more; guarded by mu
}

// keep has a job looked at that the book has from now on: it may have ended before.
func (w *endedJobs) keep(num uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.accepted) < mostAccepted {
		w.accepted = append(w.accepted, num)
	} else {
		w.more = true
	}
	coord.Signal(w.kept)
}

// takeKept returns the jobs that were kept since it was called last, and whether there are more of them.
func (w *endedJobs) takeKept() (nums []uint64, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	nums, more = w.accepted, w.more
	w.accepted, w.more = nil, false
	return nums, more
}

// watch looks which jobs have ended: those that events name, those that were accepted a moment ago, and now and then
// all. What an event does not tell, since the broker was not there, the state does.
func (w *endedJobs) watch() {
	sub := w.b.Events(w.b.Feed().Now(), node.EventFilter{
		Kinds: map[fsm.EventKind]bool{fsm.EventJobEnded: true}, Site: w.b.cfg.Site,
	})
	tick := time.NewTicker(endedEvery)
	defer tick.Stop()
	all := true
	for w.ctx.Err() == nil {
		events, more, err := sub.Look()
		all = all || err != nil
		w.look(w.named(events))
		if all {
			w.look(w.book.Unended())
			all = false
		}
		if err != nil || more == nil {
			continue
		}
		select {
		case <-more:
		case <-w.kept:
			var nums []uint64
			nums, all = w.takeKept()
			w.look(nums)
		case <-tick.C:
			all = true
		case <-w.ctx.Done():
		}
	}
}

// named returns the jobs of this site that events say have ended, and whose end is waited for.
func (w *endedJobs) named(events []node.Event) (nums []uint64) {
	for i := range events {
		if id := events[i].Job; id.Site == w.b.cfg.Site && w.book.Has(id.Num) {
			nums = append(nums, id.Num)
		}
	}
	return nums
}

// look tells of those jobs that have ended.
func (w *endedJobs) look(nums []uint64) {
	for some := range slices.Chunk(nums, endedLook) {
		ended, err := w.b.endedOf(some)
		if err == nil {
			err = w.take(ended)
		}
		if err != nil && w.ctx.Err() == nil {
			w.log.Warn().Err(err).Msg(w.late)
		}
	}
}
