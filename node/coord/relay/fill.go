package relay

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// entryCalls are the calls of an entry being filled.
type entryCalls struct {
	items           []item
	commands, bytes int
	bundles         int // at most: neighbouring calls of this member count as one
	maxBytes        int
}

// maxEntryBundles leaves room for the leader's introduction.
const maxEntryBundles = command.MaxBundles - 1

// add takes a call up if it has room; a lone call has.
func (e *entryCalls) add(it *item) bool {
	last := len(e.items) - 1
	if last >= 0 && (e.commands+it.commands > MaxEntryCommands || e.bytes+it.bytes > e.maxBytes ||
		e.bundles >= maxEntryBundles) {
		return false
	}
	if it.signed != nil || last < 0 || e.items[last].signed != nil {
		e.bundles++
	}
	e.items = append(e.items, *it)
	e.commands += it.commands
	e.bytes += it.bytes
	return true
}

// take removes the calls of the next entry: first the judgements of this leader, those
// of another term apart; then the sites' calls in turns. Where calls are left over, the
// next entry goes on behind the site that had the last turn, else behind the one that
// was first, so both can be seen from the entries.
func (q *callQueue) take(now time.Duration, term uint64, maxBytes int) (e entryCalls, wrong []item) {
	q.freeHeld(now)
	e = entryCalls{items: make([]item, 0, min(q.load.calls, MaxEntryCommands)), maxBytes: maxBytes}
	wrong, full := q.takeAhead(term, &e)
	if !full {
		q.takeTurns(now, &e)
	}
	if q.load.calls == 0 {
		q.round += allRounds // who used what nobody else wanted owes nobody
	}
	return e, wrong
}

func (q *callQueue) takeAhead(term uint64, e *entryCalls) (wrong []item, full bool) {
	for q.ahead.load.calls > 0 {
		it := q.ahead.first()
		switch {
		case it.term != 0 && it.term != term:
			wrong = append(wrong, *it)
		case !e.add(it):
			return wrong, true
		}
		q.load.remove(it)
		q.ahead.pop()
	}
	return wrong, false
}

// takeTurns visits the lanes, each once a round. A visit takes a call, repays a part of
// what its lane took before, or ends the entry: there are not many more visits than calls.
func (q *callQueue) takeTurns(now time.Duration, e *entryCalls) {
	defer q.leave()
	at, found := q.find(q.after)
	if found {
		at++
	}
	first := ""
	for open := len(q.turns); open > 0; at++ {
		if at == len(q.turns) {
			q.leave()
			q.round++
			at = 0
		}
		l := q.turns[at]
		if l.load.calls == 0 || l.isHeld {
			continue // it left in this round
		}
		before := len(e.items)
		full := q.visit(now, l, e)
		if len(e.items) > before {
			if q.after = l.site; first == "" {
				first = l.site
			}
		}
		if full {
			return
		}
		if l.load.calls == 0 || l.isHeld {
			open--
		}
	}
	if first != "" {
		q.after = first
	}
}

// visit gives a lane its turn; full: the entry has no room for its call.
func (q *callQueue) visit(now time.Duration, l *lane, e *entryCalls) (full bool) {
	if l.credit <= 0 {
		l.credit += turnWeight
	}
	before := *e
	for l.credit > 0 && l.load.calls > 0 && !full {
		it := l.first()
		if full = !e.add(it); !full {
			l.credit -= it.weight()
			q.load.remove(it)
			l.pop()
		}
	}
	commands := e.commands - before.commands
	for i := len(before.items); i < len(e.items); i++ {
		if e.items[i].signed != nil {
			commands += bundleCharges
		}
	}
	l.charge(&q.quota, now, commands, e.bytes-before.bytes)
	if l.load.calls > 0 && l.freeAt(&q.quota) > now {
		q.load.removeAll(l.load)
		q.hold(now, l)
	}
	return full
}

// leave takes the lanes out of turns that have no calls or wait for their quota.
func (q *callQueue) leave() {
	q.turns = slices.DeleteFunc(q.turns, func(l *lane) bool {
		if l.load.calls > 0 && !l.isHeld {
			return false
		}
		l.credit, l.round = min(0, l.credit), q.round
		return true
	})
}
