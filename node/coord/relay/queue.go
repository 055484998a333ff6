package relay

import (
	"slices"
	"strings"
	"time"
)

// A call weighs what it takes of an entry: its bytes, or commandWeight a command if
// that is more. turnWeight is what a site takes before the others have their turn.
const (
	commandWeight = 256
	turnWeight    = 16 << 10
	// A bundle weighs a quarter of a turn at least, and counts to its site's quota as so many commands more: each
	// replica verifies it for as long as it executes some dozens of them. So a site has at most some 2000 a second.
	bundleWeight  = turnWeight / 4
	bundleCharges = 128
)

func (it *item) weight() int {
	w := max(it.bytes, commandWeight*it.commands)
	if it.signed != nil {
		w = max(w, bundleWeight)
	}
	return w
}

// callQueue holds the calls that wait at the leader, in a lane for each site, and
// fills entries from them in turns (surplus round robin: a deficit round robin in
// which a turn may end with a debt, so the first call of a site that owes nothing never
// waits for credit). Calls cost O(1), but for a binary search when a site begins to wait.
type callQueue struct {
	quota Quota

	// ahead are the leader's own judgements, which wait for no site's turn or quota.
	ahead lane
	lanes map[string]*lane
	// turns are the lanes that have calls and are within their quota, by name.
	turns []*lane
	// held are the lanes that have calls and are not.
	held []*lane
	// load is what waits in ahead and in turns.
	load load

	// after is the site behind which the next entry begins in turns.
	after string
	round uint64 // how often all had their turn
	prune int    // how many lanes are looked through for those that nobody needs
	// waited is how long sites' calls have waited for their quotas, for those that did.
	waited map[string]time.Duration
}

const (
	minLanes = 1024
	// allRounds repay any debt.
	allRounds = MaxCallBytes / turnWeight
)

func newCallQueue(quota Quota) callQueue {
	return callQueue{quota: quota, lanes: map[string]*lane{}, waited: map[string]time.Duration{}, prune: minLanes}
}

// submit adds calls of a site. The time counts from any fixed moment.
func (q *callQueue) submit(now time.Duration, site string, items []item) {
	if len(items) == 0 {
		return
	}
	l := q.lane(now, site)
	was := l.load
	for i := range items {
		if it := &items[i]; it.ahead {
			q.ahead.push(it)
			q.load.add(it)
		} else {
			l.push(it)
		}
	}
	switch {
	case l.isHeld || l.load.calls == 0:
	case was.calls == 0:
		q.enter(now, l)
	default:
		q.load.removeAll(was)
		q.load.addAll(l.load)
	}
}

// lane returns a site's lane.
func (q *callQueue) lane(now time.Duration, site string) *lane {
	if l := q.lanes[site]; l != nil {
		return l
	}
	if len(q.lanes) >= q.prune {
		for name, l := range q.lanes {
			if l.load.calls == 0 && max(l.commands, l.bytes) <= now {
				delete(q.lanes, name)
			}
		}
		q.prune = max(minLanes, 2*len(q.lanes))
	}
	l := &lane{site: site, round: q.round}
	q.lanes[site] = l
	return l
}

// enter has a lane with calls take turns, or wait for its quota.
func (q *callQueue) enter(now time.Duration, l *lane) {
	if l.freeAt(&q.quota) > now {
		q.hold(now, l)
		return
	}
	l.credit = min(0, l.credit+int(min(q.round-l.round, allRounds))*turnWeight)
	q.load.addAll(l.load)
	at, _ := q.find(l.site)
	q.turns = slices.Insert(q.turns, at, l)
}

// hold has a lane with calls wait for its quota. REQUIRES: it does not take turns.
func (q *callQueue) hold(now time.Duration, l *lane) {
	l.isHeld, l.held = true, now
	q.held = append(q.held, l)
}

// freeHeld has the lanes take turns again that are within their quota by now.
func (q *callQueue) freeHeld(now time.Duration) {
	q.held = slices.DeleteFunc(q.held, func(l *lane) bool {
		if l.freeAt(&q.quota) > now {
			return false
		}
		l.isHeld = false
		q.waited[l.site] += now - l.held
		q.enter(now, l)
		return true
	})
}

// nextFree returns when the first held lane will be within its quota; false: none is held.
func (q *callQueue) nextFree() (at time.Duration, ok bool) {
	for _, l := range q.held {
		if free := l.freeAt(&q.quota); !ok || free < at {
			at, ok = free, true
		}
	}
	return at, ok
}

func (q *callQueue) find(site string) (int, bool) {
	return slices.BinarySearchFunc(q.turns, site, func(l *lane, s string) int { return strings.Compare(l.site, s) })
}

// takeAll removes all calls.
func (q *callQueue) takeAll() (items []item) {
	items = slices.Concat(items, q.ahead.items[q.ahead.head:])
	q.ahead = lane{}
	for _, l := range slices.Concat(q.turns, q.held) {
		items = append(items, l.items[l.head:]...)
		l.items, l.head, l.load, l.isHeld = nil, 0, load{}, false
	}
	q.turns, q.held, q.load = nil, nil, load{}
	return items
}
