package store

import (
	"container/heap"
	"time"
)

// index is what the store knows of its blobs. It is in memory and is made of the files: names have space, owner and
// hash, a file's size is the blob's, and its modification time is when it was used last.
//
// All methods REQUIRE that the store's mu is held.
type index struct {
	entries map[slot]*entry
	// busy has the slots whose files are being made or removed; each channel is closed at the end.
	// Invariant: what is busy has no entry.
	busy map[slot]chan struct{}
	// pins counts for each blob, there or not, who pins it. Invariant: no zeros.
	pins map[key]int
	// pinners has what each one pins.
	pinners map[string]map[key]struct{}
	idle    [spaces]idleHeap // entries that nobody holds or pins
	unheld  [spaces]int64    // bytes of idle
	used    [spaces]int64    // bytes of entries, and of reservations for what is being written
	count   [spaces]int      // entries
	promises
}

// slot is a blob, whole or in the making: both can be there.
type slot struct {
	key
	part bool
}

// entry is one blob.
type entry struct {
	slot
	size    int64
	used    time.Time // by whom there is no pin; see Limit.Keep
	put     time.Time // when it came to be there, zero: not in this life of the store, or it was filled
	holds   int       // readers, or the one who fills it
	damaged bool
	unsure  bool // it was not synced, and its disk may have lost some of it since: see Confirm
	gone    bool // it is out of the index, while somebody still holds it
	pos     int  // in idle; -1: not there
}

// block is what a file takes on the disk at least.
const block = 4096

// charge returns what a blob counts against the quota.
func charge(size int64) int64 { return max((size+block-1)/block, 1) * block }

func newIndex() index {
	return index{
		entries:  map[slot]*entry{},
		busy:     map[slot]chan struct{}{},
		pins:     map[key]int{},
		pinners:  map[string]map[key]struct{}{},
		promises: newPromises(),
	}
}

// add has a blob in the index. Its bytes count already.
func (x *index) add(e *entry) {
	e.pos = -1
	x.entries[e.slot] = e
	x.count[e.Space]++
	x.settle(e)
	x.settlePromise(e.key)
}

// drop takes a blob out of the index. Its bytes still count.
func (x *index) drop(e *entry) {
	if e.gone {
		return
	}
	e.gone = true
	x.settle(e)
	delete(x.entries, e.slot)
	x.count[e.Space]--
	x.settlePromise(e.key)
}

// settle has an entry stand in idle if it belongs there, and at the right place.
func (x *index) settle(e *entry) {
	h := &x.idle[e.Space]
	belongs := !e.gone && e.holds == 0 && x.pins[e.key] == 0
	switch {
	case belongs && e.pos < 0:
		heap.Push(h, e)
		x.unheld[e.Space] += charge(e.size)
	case belongs:
		heap.Fix(h, e.pos)
	case e.pos >= 0:
		heap.Remove(h, e.pos)
		x.unheld[e.Space] -= charge(e.size)
	}
}

// settleKey settles the entries of a blob.
func (x *index) settleKey(k key) {
	for _, part := range []bool{false, true} {
		if e := x.entries[slot{k, part}]; e != nil {
			x.settle(e)
		}
	}
}

// occupy marks a slot that has no entry as busy.
func (x *index) occupy(at slot) { x.busy[at] = make(chan struct{}) }

// vacate ends that, and wakes who waits.
func (x *index) vacate(at slot) {
	close(x.busy[at])
	delete(x.busy, at)
}

// evict takes an entry out of the index and its bytes off the quota, and occupies its slot until its files are gone.
func (x *index) evict(e *entry) {
	x.drop(e)
	x.used[e.Space] -= charge(e.size)
	x.occupy(e.slot)
}

// idleHeap has the least recently used entry first.
type idleHeap []*entry

// Len is heap.Interface's.
func (h idleHeap) Len() int { return len(h) }

// Less is heap.Interface's.
func (h idleHeap) Less(i, k int) bool { return h[i].used.Before(h[k].used) }

// Swap is heap.Interface's.
func (h idleHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].pos, h[k].pos = i, k
}

// Push is heap.Interface's.
func (h *idleHeap) Push(v any) {
	e := v.(*entry) // settle pushes nothing else
	e.pos = len(*h)
	*h = append(*h, e)
}

// Pop is heap.Interface's.
func (h *idleHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.pos = -1
	return e
}
