package keys

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/record"
)

// dueBook says which runs of a Book are forgotten next, each by the name of
// its first line. It holds each run once and no other: what is refused and
// dropped leaves nothing behind.
type dueBook struct {
	// runs by the step in which they came, in any order. Invariant: each is
	// held, and its due says where it stands; no list is empty.
	runs map[uint32][]Name
	// steps of runs, oldest first.
	steps []uint32
}

// leastShrunk is the smallest list that is worth to be made smaller.
const leastShrunk = 64

// add takes a run and returns where it stands.
func (d *dueBook) add(step uint32, run Name) (at uint32) {
	list := d.runs[step]
	if len(list) == 0 {
		i, _ := slices.BinarySearch(d.steps, step)
		d.steps = slices.Insert(d.steps, i, step)
	}
	d.runs[step] = append(list, run)
	return uint32(len(list))
}

// remove takes out the run that stands at a place, and returns the one that
// stands there now, if any.
func (d *dueBook) remove(step, at uint32) (moved Name, ok bool) {
	list := d.runs[step]
	last := uint32(len(list) - 1)
	if last == 0 {
		delete(d.runs, step)
		i, _ := slices.BinarySearch(d.steps, step)
		d.steps = slices.Delete(d.steps, i, i+1)
		return moved, false
	}
	moved, list[at] = list[last], list[last]
	list = list[:last]
	if len(list) >= leastShrunk && len(list) < cap(list)/4 {
		list = slices.Clone(list)
	}
	d.runs[step] = list
	return moved, at < last
}

// next returns a run that is over, if there is one.
func (d *dueBook) next(now time.Duration) (run Name, ok bool) {
	if len(d.steps) == 0 || !Over(d.steps[0], now) {
		return run, false
	}
	list := d.runs[d.steps[0]]
	return list[len(list)-1], true
}

// maxForget bounds how many runs one tick forgets.
const maxForget = 10_000

// Expire forgets runs older than Lifetime, a bounded number at a time.
func (k *Book) Expire(writes *[]record.Write) {
	k.noteClock(writes)
	n := min(maxForget, len(k.stale))
	for _, run := range k.stale[:n] {
		if i, held := k.at(run); !held || k.runs[run.slot()][i].first != run.line { // else the record is another's now
			*writes = append(*writes, record.Tidy(record.BucketKeys, runKey(run.hash, run.line)))
		}
	}
	if k.stale = k.stale[n:]; len(k.stale) == 0 {
		k.stale = nil
	}
	for ; n < maxForget; n++ {
		run, ok := k.due.next(k.clock)
		if !ok {
			return
		}
		i, _ := k.at(run)
		k.forget(run.slot(), i)
		*writes = append(*writes, record.Tidy(record.BucketKeys, runKey(run.hash, run.line)))
	}
}
