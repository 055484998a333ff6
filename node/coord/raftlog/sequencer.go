package raftlog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm"
)

// item is one call waiting at the lead, from this member or forwarded.
type item struct {
	call
	cmds  [][]byte
	bytes int
	term  uint64 // 0 = any
	done  func(o outcome, index uint64)
}

// sequencer is the lead's side: it collects waiting calls into entries, stamps
// them, and keeps a few entries in flight. It runs at every member and refuses
// while the member does not lead.
type sequencer struct {
	raft  *raft.Raft
	t     timing
	hooks Hooks

	mu       sync.Mutex
	queue    []item
	commands int // in the queue
	bytes    int
	tickDue  bool
	kick     chan struct{} // signalled when one of these, or the entries in flight, changed

	// The order goroutine owns term and start.
	term  uint64
	start time.Time // of the term's first entry, monotonic
	// stamped says that an entry was stamped since idle last looked.
	stamped atomic.Bool

	flight chan flying
	slots  chan struct{}
	// ready is the term in which an entry of this lead was applied here.
	ready   atomic.Uint64
	onReady func()
}

// flying is an entry handed to raft.
type flying struct {
	future raft.ApplyFuture
	term   uint64
	items  []item
}

func newSequencer(r *raft.Raft, t timing, hooks Hooks, onReady func()) *sequencer {
	return &sequencer{
		raft: r, t: t, hooks: hooks, onReady: onReady,
		kick: make(chan struct{}, 1), flight: make(chan flying, t.slots), slots: make(chan struct{}, t.slots),
	}
}

// submit queues calls; each gets its done called once.
func (s *sequencer) submit(items ...item) {
	s.mu.Lock()
	s.queue = append(s.queue, items...)
	for _, it := range items {
		s.commands += it.commands
		s.bytes += it.bytes
	}
	s.mu.Unlock()
	signal(s.kick)
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
	signal(s.kick)
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
		for s.due() {
			select {
			case s.slots <- struct{}{}:
			case <-ctx.Done():
				s.refuseAll()
				return
			}
			if !s.entry() {
				<-s.slots
			}
		}
	}
}

// due says whether to send an entry now. While one is in flight, small calls
// wait for it and share the next: on a LAN one fuller entry costs less than two
// that overlap (DESIGN.md has the figures).
func (s *sequencer) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 && !s.tickDue {
		return false
	}
	return len(s.slots) == 0 || s.commands >= s.t.gather || s.bytes >= maxEntryBytes/4
}

func (s *sequencer) refuseAll() {
	s.mu.Lock()
	items := s.queue
	s.queue, s.commands, s.bytes, s.tickDue = nil, 0, 0, false
	s.mu.Unlock()
	finish(items, refused, 0)
}

func finish(items []item, o outcome, index uint64) {
	for _, it := range items {
		it.done(o, index)
	}
}

// take removes the calls of the next entry from the queue.
func (s *sequencer) take(term uint64) (items, wrong []item, commands int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes, n := 0, 0
	for _, it := range s.queue {
		if it.term != 0 && it.term != term {
			wrong = append(wrong, it)
			s.commands -= it.commands
			s.bytes -= it.bytes
			n++
			continue
		}
		if len(items) > 0 && (commands+it.commands > maxEntryCommands || bytes+it.bytes > maxEntryBytes) {
			break
		}
		items = append(items, it)
		commands += it.commands
		bytes += it.bytes
		n++
	}
	s.queue = append(s.queue[:0:0], s.queue[n:]...)
	s.commands -= commands
	s.bytes -= bytes
	s.tickDue = false
	return items, wrong, commands
}

// entry builds and sends one entry; false: nothing was sent.
func (s *sequencer) entry() bool {
	if s.raft.State() != raft.Leader {
		s.refuseAll()
		return false
	}
	term := s.raft.CurrentTerm()
	items, wrong, commands := s.take(term)
	finish(wrong, refused, 0)
	now := time.Now()
	if term != s.term {
		s.term, s.start = term, now
	}
	s.stamped.Store(true)
	data, ext := encodeEntry(term, now.Sub(s.start).Milliseconds(), items, commands)
	if s.hooks.Entry != nil {
		s.hooks.Entry(commands, len(data))
	}
	f := s.raft.ApplyLog(raft.Log{Data: data, Extensions: ext}, s.t.enqueue)
	s.flight <- flying{f, term, items}
	return true
}

func encodeEntry(term uint64, elapsed int64, items []item, commands int) (data, ext []byte) {
	cmds := make([][]byte, 0, commands)
	h := header{term: term, calls: make([]call, 0, len(items))}
	size := 32
	for _, it := range items {
		cmds = append(cmds, it.cmds...)
		h.calls = append(h.calls, it.call)
		size += it.bytes + 3*len(it.cmds)
	}
	data = fsm.AppendBatch(make([]byte, 0, size), term, elapsed, cmds)
	return data, h.append(make([]byte, 0, 16+14*len(items)))
}

// settle waits for entries in order, until order has ended and raft answered.
func (s *sequencer) settle() {
	for f := range s.flight {
		o := classify(f.future)
		if o == ordered && s.ready.Swap(f.term) != f.term {
			s.onReady()
		}
		<-s.slots
		signal(s.kick)
		finish(f.items, o, indexOf(f.future, o))
	}
}

func indexOf(f raft.ApplyFuture, o outcome) uint64 {
	if o != ordered {
		return 0
	}
	return f.Index()
}

// classify waits for the future. Refused are the three errors that raft gives
// before it appends, and an entry that every member skips.
func classify(f raft.ApplyFuture) outcome {
	err := f.Error()
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return refused
	case err != nil:
		return unknown
	}
	if failed, ok := f.Response().(error); ok {
		if errors.Is(failed, errVoid) {
			return refused
		}
		return unknown
	}
	return ordered
}

// leads says whether this member leads and has applied an entry of its term.
func (s *sequencer) leads() bool {
	_, ok := s.leading()
	return ok
}

// leading is leads, with the term.
func (s *sequencer) leading() (term uint64, ok bool) {
	term = s.ready.Load()
	return term, term != 0 && s.raft.State() == raft.Leader && s.raft.CurrentTerm() == term
}

// busy says whether more entries than the one being applied are in flight.
func (s *sequencer) busy() bool { return len(s.slots) > 1 }

// signal wakes the reader of a channel of capacity one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
