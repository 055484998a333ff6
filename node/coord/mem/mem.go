// Package mem is the in-memory backend of coord: step 3 of a job's way inside
// one process, for tests and the simulator.
//
// It starts no goroutine and reads no clock: an entry is ordered, encoded,
// decoded and applied at every member within the call that proposed it, and
// time is what the clock given to [New] says. Equal calls in equal order make
// equal entries. The package imports fsm and coord, never the broker.
package mem

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Limits as in raftlog, so that nothing passes here that fails there.
const (
	maxCallCommands  = 4096
	maxEntryCommands = 4096
	maxEntryBytes    = 1 << 20
)

// Group is the ordered log and its members. All methods are safe for
// concurrent use.
type Group struct {
	now func() int64

	qmu   sync.Mutex
	queue []*call // waiting for the next entry

	mu       sync.Mutex
	members  map[string]*Log // by site, running or not, until removed
	order    []string        // sorted sites
	entries  []entry         // entry base+1 and following
	base     uint64          // Invariant: snapshot holds entries 1 … base.
	snapshot []byte
	kept     int    // size of entries
	lead     string // "" = none
	term     uint64
	start    int64 // clock at the term's first entry
	elapsed  int64 // of the newest entry
	changed  coord.Broadcast
	hold     chan struct{} // see HoldRenewals; nil = no hold
	signing  signing

	// Memory that append and Together use again: a simulation orders millions of
	// entries. Invariant: empty, or held by nothing else, between calls.
	cmds     [][]byte
	together scratch
}

// entry is one element of the order.
type entry struct {
	data  []byte
	calls []*call
}

// size is about what an entry takes in memory, in bytes.
func (e *entry) size() int { return len(e.data) + 64 }

// New returns an empty group; now is a clock in milliseconds that never goes
// back.
func New(now func() int64) *Group {
	return &Group{now: now, members: map[string]*Log{}}
}

// Open starts a site's member, or starts it again: the machine is brought up to
// date from the group's snapshot and entries. The first member becomes the leader.
func (g *Group) Open(site string, m coord.Machine) (*Log, error) {
	if !command.ValidSite(site) {
		return nil, fmt.Errorf("open log: site name %.80q is not a DNS label", site)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.members[site]; old != nil && !old.closed {
		return nil, fmt.Errorf("open log: site %s runs already: close it first", site)
	}
	l := &Log{
		g: g, site: site, m: m,
		changed: make(chan struct{}, 1), failed: make(chan struct{}),
	}
	if old := g.members[site]; old != nil {
		l.cut, l.lag = old.cut, old.lag
	}
	g.members[site] = l
	if i, found := slices.BinarySearch(g.order, site); !found {
		g.order = slices.Insert(g.order, i, site)
	}
	g.elect()
	g.deliver()
	return l, nil
}

// Tick appends an idle entry, as a leader does each second in which nothing else
// moves time. Without a leader it does nothing.
func (g *Group) Tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lead != "" {
		g.append(nil)
		g.deliver()
	}
}

// SetLead makes a running, connected voter the leader of a new term.
func (g *Group) SetLead(site string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.members[site]; l == nil || !l.reachable() || l.resting {
		return fmt.Errorf("leader %s: %w", site, coord.ErrNoLead)
	}
	g.newTerm(site)
	g.react() // one that is not fit hands over
	return nil
}

// Lead returns the leader's site, "" for none.
func (g *Group) Lead() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lead
}

// Cut severs a member from the others; Lag keeps entries from it; Heal undoes
// both; LoseAnswer has its next call ordered twice, as happens when the answer
// to a forwarded call is lost and the call is sent again.
func (g *Group) Cut(site string) { g.fault(site, func(l *Log) { l.cut = true }) }

// Lag is described at Cut.
func (g *Group) Lag(site string) { g.fault(site, func(l *Log) { l.lag = true }) }

// Heal is described at Cut.
func (g *Group) Heal(site string) { g.fault(site, func(l *Log) { l.cut, l.lag = false, false }) }

// LoseAnswer is described at Cut.
func (g *Group) LoseAnswer(site string) { g.fault(site, func(l *Log) { l.lose = true }) }

func (g *Group) fault(site string, f func(*Log)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.members[site]; l != nil {
		f(l)
		g.react()
	}
}

// Compact replaces the entries before now by a snapshot of the leader's machine.
func (g *Group) Compact() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.compact()
}

// REQUIRES: g.mu held.
func (g *Group) compact() error {
	l := g.members[g.lead]
	if l == nil {
		return fmt.Errorf("compact: %w", coord.ErrNoLead)
	}
	s, err := l.m.Snapshot()
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	defer s.Release()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	g.snapshot = b.Bytes()
	g.entries = append([]entry(nil), g.entries[l.applied-g.base:]...)
	g.base, g.kept = l.applied, 0
	for i := range g.entries {
		g.kept += g.entries[i].size()
	}
	return nil
}

// depose takes the leadership from a site that is to have it no longer.
//
// REQUIRES: g.mu held.
func (g *Group) depose(site string) {
	if g.lead == site {
		g.lead = ""
	}
	g.react()
}

// react is what follows a change of who is there: a leader, the entries that now
// arrive, and another look for all who wait for either.
//
// REQUIRES: g.mu held.
func (g *Group) react() {
	g.elect()
	g.deliver()
	g.notify()
}

// elect keeps the leader if it can lead and is fit, else chooses the first site that
// is; one that is not fit leads where no other can.
//
// REQUIRES: g.mu held.
func (g *Group) elect() {
	up := 0
	fit, first := "", ""
	voters := g.voters()
	for _, s := range voters {
		l := g.members[s]
		if !l.reachable() {
			continue
		}
		up++
		if l.lag {
			continue
		}
		if first == "" {
			first = s
		}
		if fit == "" && l.unfit == "" {
			fit = s
		}
	}
	leader := g.members[g.lead]
	leads := leader != nil && leader.reachable() && !leader.resting
	switch {
	case 2*up <= len(voters):
		g.lead = ""
	case leads && (leader.unfit == "" || fit == ""):
		return
	case fit != "":
		g.newTerm(fit)
	case first != "":
		g.newTerm(first)
	}
	g.notify()
}

// newTerm starts a term with an empty entry, which anchors its time.
//
// REQUIRES: g.mu held.
func (g *Group) newTerm(lead string) {
	g.lead = lead
	g.term++
	g.start, g.elapsed = g.now(), 0
	g.append(nil, g.signing.introduction(lead, g.term)...)
	g.notify()
}

// REQUIRES: g.mu held.
func (g *Group) notify() {
	g.changed.Fire()
	for _, l := range g.members {
		coord.Signal(l.changed)
	}
}

// append orders calls as one entry; the leader's own words stand alone. REQUIRES: g.mu held.
func (g *Group) append(calls []*call, own ...[]byte) {
	g.elapsed = max(g.elapsed, g.now()-g.start)
	cmds, size := append(g.cmds[:0], own...), maxHeader
	bundles := g.signing.bundle(nil, g.lead, own)
	for _, c := range calls {
		from := len(cmds)
		for i := range c.cmds {
			cmds = append(cmds, c.cmds[i].data)
		}
		size += c.bytes
		bundles = g.signing.bundle(bundles, c.from.site, cmds[from:])
	}
	e := entry{data: command.AppendBatch(make([]byte, 0, size), g.term, g.elapsed, cmds, bundles), calls: calls}
	clear(cmds) // they are copied
	g.cmds = cmds[:0]
	g.entries = append(g.entries, e)
	g.kept += e.size()
	for _, c := range calls {
		c.ordered = g.last()
	}
}

// REQUIRES: g.mu held.
func (g *Group) last() uint64 { return g.base + uint64(len(g.entries)) }

// flush orders everything that waits, in as few entries as the limits allow.
//
// REQUIRES: g.mu held.
func (g *Group) flush() {
	g.qmu.Lock()
	queue := g.queue
	g.queue = nil
	g.qmu.Unlock()
	g.pack(queue, maxEntryCommands, maxEntryBytes)
}

// pack orders calls in as few entries as the limits allow.
//
// REQUIRES: g.mu held.
func (g *Group) pack(queue []*call, mostCommands, mostBytes int) {
	var batch []*call
	commands, size := 0, 0
	end := func() {
		if len(batch) > 0 {
			g.append(batch)
			g.deliver()
		}
		batch, commands, size = nil, 0, 0
	}
	for _, c := range queue {
		if c.state() != orderable {
			continue
		}
		if commands+len(c.cmds) > mostCommands || size+c.bytes > mostBytes {
			end()
		}
		batch = append(batch, c)
		commands += len(c.cmds)
		size += c.bytes
		if c.from.lose {
			c.from.lose = false
			end()
			batch = []*call{c}
			end()
		}
	}
	end()
}

// deliver brings every member that can hear up to date.
//
// REQUIRES: g.mu held.
func (g *Group) deliver() {
	for g.deliverOnce(); g.hasWork(); g.deliverOnce() {
		g.append(nil)
	}
}

// hasWork reports whether the leader's machine has left work to the next entry.
//
// REQUIRES: g.mu held.
func (g *Group) hasWork() bool {
	l := g.members[g.lead]
	return l != nil && l.reachable() && !l.lag && l.applied == g.last() && coord.HasWork(l.m)
}

// REQUIRES: g.mu held.
func (g *Group) deliverOnce() {
	failed := false
	for _, s := range g.order {
		l := g.members[s]
		if l.applied < g.last() && l.reachable() && !l.lag && (g.lead != "" || l.applied < g.base) {
			if err := g.deliverTo(l); err != nil {
				failed = true
				l.fail(err)
			}
		}
	}
	if failed {
		g.elect()
	}
}

// REQUIRES: g.mu held.
func (g *Group) deliverTo(l *Log) error {
	if l.applied < g.base {
		if err := l.m.Restore(bytes.NewReader(g.snapshot)); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		l.applied = g.base
		l.restored()
	}
	for l.applied < g.last() {
		e := g.entries[l.applied-g.base]
		results, err := l.m.Apply(e.data)
		if err != nil {
			return fmt.Errorf("apply entry %d: %w", l.applied+1, err)
		}
		l.applied++
		at := 0
		for _, c := range e.calls {
			if c.from == l {
				c.finish(results[at:at+len(c.cmds):at+len(c.cmds)], nil)
			}
			at += len(c.cmds)
		}
	}
	l.progress.Fire()
	return nil
}

var errNotVoter = errors.New("it is the only voter: another site must become one first")
