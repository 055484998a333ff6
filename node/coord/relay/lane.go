package relay

import "time"

// Quota is what one site may have ordered in a second by a leader, whether or not
// others wait; more of its calls wait. The zero value sets no bound.
type Quota struct {
	Commands, Bytes int           // a second
	Burst           time.Duration // how much of it may come at once, if none came before
}

// DefaultQuota is a few times what one site was measured to have ordered at most
// (DESIGN.md). What a site may have waiting here passes within two seconds, so its
// broker, which gives up a leader that owes an answer for Timing.Reply, never does.
func DefaultQuota() Quota {
	return Quota{Commands: 1 << 18, Bytes: 32 << 20, Burst: 4 * time.Second}
}

// time returns how long a site's quota needs for a call.
func (q *Quota) time(commands, bytes int) (forCommands, forBytes time.Duration) {
	if q.Commands > 0 {
		forCommands = time.Duration(commands) * time.Second / time.Duration(q.Commands)
	}
	if q.Bytes > 0 {
		forBytes = time.Duration(bytes) * time.Second / time.Duration(q.Bytes)
	}
	return forCommands, forBytes
}

// load is what waits in a lane, or in several.
type load struct {
	calls, commands, bytes int
	urgent                 int // calls that are no reports
}

func (l *load) add(it *item) {
	l.calls++
	l.commands += it.commands
	l.bytes += it.bytes
	if !it.reports {
		l.urgent++
	}
}

func (l *load) remove(it *item) {
	l.calls--
	l.commands -= it.commands
	l.bytes -= it.bytes
	if !it.reports {
		l.urgent--
	}
}

func (l *load) addAll(o load) {
	l.calls += o.calls
	l.commands += o.commands
	l.bytes += o.bytes
	l.urgent += o.urgent
}

func (l *load) removeAll(o load) {
	l.calls -= o.calls
	l.commands -= o.commands
	l.bytes -= o.bytes
	l.urgent -= o.urgent
}

// lane holds the waiting calls of one site, first in, first out.
type lane struct {
	site  string
	items []item // from head on; those before are zero
	head  int
	load  load

	// credit is what the site may still take before the others have their turn.
	// Invariant: at most turnWeight; a large call leaves a debt.
	credit int
	round  uint64 // when the lane left the rotation: every round since repays a turn

	// commands and bytes are token buckets, each as the moment when it is full again
	// (the generic cell rate algorithm of ITU-T I.371); held is since when the site
	// waits for them.
	commands, bytes time.Duration
	held            time.Duration
	isHeld          bool
}

// maxIdleItems is how many places for calls an empty lane keeps.
const maxIdleItems = 128

// push adds a call behind the others.
func (l *lane) push(it *item) {
	if len(l.items) == cap(l.items) && l.head > len(l.items)/2 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	l.items = append(l.items, *it)
	l.load.add(it)
}

// first returns the call at the front. REQUIRES: there is one.
func (l *lane) first() *item { return &l.items[l.head] }

// pop removes the call at the front. REQUIRES: there is one.
func (l *lane) pop() {
	l.load.remove(l.first())
	l.items[l.head] = item{} // what it points to is large
	if l.head++; l.head < len(l.items) {
		return
	}
	if l.items, l.head = l.items[:0], 0; cap(l.items) > maxIdleItems {
		l.items = nil
	}
}

// charge counts calls to the quota.
func (l *lane) charge(q *Quota, now time.Duration, commands, bytes int) {
	forCommands, forBytes := q.time(commands, bytes)
	l.commands = max(l.commands, now) + forCommands
	l.bytes = max(l.bytes, now) + forBytes
}

// freeAt returns from when on the site is within its quota. The last turn of a burst
// may go beyond it, or a large one would never pass.
func (l *lane) freeAt(q *Quota) time.Duration { return max(l.commands, l.bytes) - q.Burst }
