package broker

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
	"github.com/cloudshare/cloudshare/node/record"
)

// committer syncs what turns have left, aside from the loop, and carries out what must not
// happen before.
type committer struct {
	*process
	journal *record.Journal
	perform func(*core.Effects)
	// commits are turns whose records are to be synced; unsynced is commitLoop's.
	// behind are turns that commits has no room for yet, oldest first; the loop's.
	commits  chan *core.Effects
	unsynced []record.Write
	behind   []*core.Effects
	synced   chan struct{} // a publication's records are synced
	counters counters
}

func newCommitter(p *process, j *record.Journal) *committer {
	return &committer{
		process: p, journal: j,
		commits: make(chan *core.Effects, maxGroup), synced: make(chan struct{}, 1),
	}
}

// commit hands a turn to commitLoop, in order, without waiting for it.
func (k *committer) commit(fx *core.Effects) {
	if len(k.behind) == 0 {
		select {
		case k.commits <- fx:
			return
		default:
		}
	}
	k.behind = append(k.behind, fx)
}

// maxBehind is how many turns may wait for commitLoop before the loop takes no
// more events; a journal that hangs so long is given up.
const maxBehind = 4096

// backlog returns the oldest turn that waits for commitLoop, and where it goes.
func (k *committer) backlog() (commits chan<- *core.Effects, oldest *core.Effects) {
	if len(k.behind) == 0 {
		return nil, nil
	}
	return k.commits, k.behind[0]
}

// isFull reports whether so much waits for commitLoop that the loop takes no more events.
func (k *committer) isFull() bool { return len(k.behind) >= maxBehind }

// sent notes that commitLoop has the oldest turn.
func (k *committer) sent() { k.behind = slices.Delete(k.behind, 0, 1) }

// commitLoop syncs what turns have left, all that waits in one sync, and then
// carries out the effects in the order of the turns.
func (k *committer) commitLoop() {
	group := make([]*core.Effects, 0, maxGroup)
	for {
		select {
		case fx := <-k.commits:
			group = append(group[:0], fx)
		case <-k.ctx.Done():
			return
		}
		for more := true; more && len(group) < maxGroup; {
			select {
			case fx := <-k.commits:
				group = append(group, fx)
			default:
				more = false
			}
		}
		if mutate.On("no-journal-sync") {
			k.syncLater(group)
		} else if err := k.sync(group); err != nil {
			k.fail(err)
			return
		}
		if slices.ContainsFunc(group, func(fx *core.Effects) bool { return fx.Publishes }) {
			select {
			case k.synced <- struct{}{}:
			default: // one signal opens the gate
			}
		}
		for _, fx := range group {
			k.perform(fx)
		}
	}
}

const (
	// maxGroup bounds the turns of one sync.
	maxGroup = 64
	// maxLazy is how many lazy writes wait for a sync at most.
	maxLazy = 1000
)

// sync makes the turns' writes durable, and what was put off until now.
func (k *committer) sync(group []*core.Effects) error {
	for _, fx := range group {
		k.unsynced = append(k.unsynced, fx.Writes...)
	}
	urgent := slices.ContainsFunc(k.unsynced, func(w record.Write) bool { return !w.Lazy })
	if !urgent && len(k.unsynced) < maxLazy {
		return nil
	}
	start := time.Now()
	if err := k.journal.Commit(k.unsynced); err != nil {
		return err
	}
	k.unsynced = k.unsynced[:0]
	k.counters.synced(time.Since(start))
	return nil
}
