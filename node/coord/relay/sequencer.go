package relay

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// item is what waits at the leader and stands together in an entry: a call of this member, or a bundle of forwarded
// calls, which its site has signed as a whole.
type item struct {
	calls    []call
	cmds     [][]byte
	commands int
	bytes    int
	signed   *command.Bundle // nil: it is this member's own, and signed with the entry
	term     uint64          // 0 = any
	// reports: it holds reports of what has happened only, see isReport.
	reports bool
	// ahead: it holds judgements of this leader only, which wait for no other calls.
	ahead bool
	done  func(o Outcome, index uint64)
}

// isReport reports whether commands of a kind may wait a little for others: they
// say what has ended or begun already. Nobody waits for their result but the next
// task of a queue, which has waited for seconds.
func isReport(k command.Kind) bool {
	switch k {
	case command.KindComplete, command.KindOrphans, command.KindStarted, command.KindUsage, command.KindDeliver:
		return true
	default:
		return false
	}
}

// sequencer is the leader's side: it collects waiting calls into entries, stamps
// them, and keeps a few entries in flight. It runs at every member and refuses
// while the member does not lead.
type sequencer struct {
	to    Backend
	by    *author
	t     Timing
	hooks Hooks

	begun time.Time // the queue counts its time from here

	mu      sync.Mutex
	queue   callQueue
	tickDue bool
	kick    chan struct{} // signalled when one of these, or the entries in flight, changed

	// The order goroutine owns these: the term and its first entry's moment
	// (monotonic), the newest entry's moment, and the timers for reports and quotas.
	term  uint64
	start time.Time
	last  time.Time
	rest  alarm
	pace  alarm
	quota alarm
	// stamped says that an entry was stamped since idle last looked.
	stamped atomic.Bool

	flight chan inFlightEntry
	slots  chan struct{}
	// ready is the term in which an entry of this leader was applied here.
	ready   atomic.Uint64
	onReady func()
}

// inFlightEntry is an entry handed to the backend.
type inFlightEntry struct {
	wait  func() (Outcome, uint64)
	term  uint64
	items []item
}

func newSequencer(to Backend, by *author, t Timing, hooks Hooks, onReady func()) *sequencer {
	return &sequencer{
		to: to, by: by, t: t, hooks: hooks, onReady: onReady, begun: time.Now(), queue: newCallQueue(t.Quota),
		kick: make(chan struct{}, 1), flight: make(chan inFlightEntry, t.Slots), slots: make(chan struct{}, t.Slots),
	}
}

// submit queues calls of a site; each gets its done called once.
func (s *sequencer) submit(site string, items ...item) {
	s.mu.Lock()
	s.queue.submit(time.Since(s.begun), site, items)
	s.mu.Unlock()
	coord.Signal(s.kick)
}

// idle asks for an empty entry if nothing moved time since it was called last.
// Called twice per tick, it leaves at most a tick between two entries.
func (s *sequencer) idle() {
	if !s.stamped.Swap(false) {
		s.tick()
	}
}

// tick asks for an entry even if nothing waits.
func (s *sequencer) tick() {
	s.mu.Lock()
	s.tickDue = true
	s.mu.Unlock()
	coord.Signal(s.kick)
}

// heldFor returns how long sites' calls have waited for their quotas, by site.
func (s *sequencer) heldFor() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.queue.waited)
}

// order runs until ctx ends; calls that still wait then are refused.
func (s *sequencer) order(ctx context.Context) {
	defer close(s.flight)
	for {
		select {
		case <-s.kick:
		case <-ctx.Done():
			s.refuseAll()
			return
		}
		for s.isEntryDue() {
			select {
			case s.slots <- struct{}{}:
			case <-ctx.Done():
				s.refuseAll()
				return
			}
			if !s.sendEntry() {
				<-s.slots
			}
		}
	}
}

// isEntryDue reports whether to send an entry now. While one is in flight, small calls
// wait for it and share the next: on a LAN one fuller entry costs less than two
// that overlap (DESIGN.md has the figures). Over a WAN they wait for Timing.Pace only.
func (s *sequencer) isEntryDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeHeld()
	waits := &s.queue.load
	if waits.calls == 0 && !s.tickDue {
		return false
	}
	if waits.commands >= s.t.Gather || waits.bytes >= s.t.EntryBytes/4 {
		return true
	}
	if len(s.slots) > 0 {
		return s.t.Pace > 0 && !s.pace.isEarly(time.Since(s.last), s.t.Pace, s.kick)
	}
	return !s.shouldWaitForReports()
}

// freeHeld has the calls join in whose sites are within their quotas again, and sees to
// it that the next ones do in time. REQUIRES: s.mu held, on the order goroutine.
func (s *sequencer) freeHeld() {
	if len(s.queue.held) == 0 {
		return
	}
	now := time.Since(s.begun)
	s.queue.freeHeld(now)
	if at, ok := s.queue.nextFree(); ok {
		s.quota.set(at-now, s.kick)
	}
}

// alarm is a timer that signals a channel. The zero value is ready for use.
type alarm struct{ timer *time.Timer }

func (a *alarm) set(after time.Duration, kick chan struct{}) {
	if a.timer == nil {
		a.timer = time.AfterFunc(after, func() { coord.Signal(kick) })
	} else {
		a.timer.Reset(after)
	}
}

// isEarly reports whether less than a pace has passed, and sees to a signal when it has.
func (a *alarm) isEarly(passed, pace time.Duration, kick chan struct{}) bool {
	if passed >= pace {
		return false
	}
	a.set(pace-passed, kick)
	return true
}

// enoughReports is how many reports wait for no more: an entry that three share costs each
// of them a third, and a fourth saves little, while what waits for them stands still.
const enoughReports = 3

// shouldWaitForReports reports whether reports wait, since they are alone, fewer than enoughReports, and
// the last entry was sent less than Timing.Rest ago. An entry costs three members
// most of a millisecond of processor time whatever is in it: while short tasks end
// one by one, a little patience halves their number.
//
// REQUIRES: s.mu held, on the order goroutine.
func (s *sequencer) shouldWaitForReports() bool {
	if s.t.Rest == 0 || s.queue.load.urgent > 0 || s.tickDue || s.queue.load.commands >= enoughReports {
		return false
	}
	return s.rest.isEarly(time.Since(s.last), s.t.Rest, s.kick)
}

func (s *sequencer) refuseAll() {
	s.mu.Lock()
	items := s.queue.takeAll()
	s.tickDue = false
	s.mu.Unlock()
	finish(items, Refused, 0)
}

func finish(items []item, o Outcome, index uint64) {
	for _, it := range items {
		it.done(o, index)
	}
}

// takeEntryCalls removes the calls of the next entry from the queue.
func (s *sequencer) takeEntryCalls(term uint64) (e entryCalls, wrong []item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickDue = false
	return s.queue.take(time.Since(s.begun), term, s.t.EntryBytes)
}

// sendEntry builds and sends one entry; false: nothing was sent.
func (s *sequencer) sendEntry() bool {
	term, ok := s.to.Orders()
	if !ok {
		s.refuseAll()
		return false
	}
	e, wrong := s.takeEntryCalls(term)
	finish(wrong, Refused, 0)
	now := time.Now()
	if term != s.term {
		s.term, s.start = term, now
	}
	s.last = now
	s.stamped.Store(true)
	data, ext := s.encodeEntry(term, now.Sub(s.start).Milliseconds(), &e)
	if s.hooks.Entry != nil {
		s.hooks.Entry(e.commands, len(data))
	}
	s.flight <- inFlightEntry{s.to.Append(term, data, ext), term, e.items}
	return true
}

// encodeEntry returns an entry's batch and header. Until one of the term is known to be ordered, each begins with this
// leader's introduction.
func (s *sequencer) encodeEntry(term uint64, elapsed int64, e *entryCalls) (data, ext []byte) {
	w := s.fill(term, e)
	playHostile(s, &w, e, &elapsed)
	size := 64 + w.size + len(w.bundles)*bundleSize
	data = command.AppendBatch(make([]byte, 0, size), term, elapsed, w.cmds, w.bundles)
	return data, w.header.Append(make([]byte, 0, 16+14*len(w.header.calls)))
}

// fill puts an entry's calls together.
func (s *sequencer) fill(term uint64, e *entryCalls) entryWriter {
	w := entryWriter{by: s.by, header: Header{Term: term, calls: make([]call, 0, len(e.items)+1)}}
	w.cmds = make([][]byte, 0, e.commands+1)
	if s.by != nil && s.ready.Load() != term {
		lead := s.by.lead(term)
		w.add(&item{calls: []call{{commands: 1}}, cmds: [][]byte{lead}, commands: 1, bytes: len(lead)})
	}
	for i := range e.items {
		w.add(&e.items[i])
	}
	w.sign()
	return w
}

// settleEntries waits for entries in order, until order has ended and the backend answered.
func (s *sequencer) settleEntries() {
	for f := range s.flight {
		o, index := f.wait()
		if o == Ordered && s.ready.Swap(f.term) != f.term {
			s.onReady()
		}
		<-s.slots
		coord.Signal(s.kick)
		finish(f.items, o, index)
	}
}

// leading returns the term that this member leads, if it has applied an entry of
// it.
func (s *sequencer) leading() (term uint64, ok bool) {
	term = s.ready.Load()
	now, leads := s.to.Orders()
	return term, term != 0 && leads && now == term
}
