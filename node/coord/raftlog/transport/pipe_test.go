package transport

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// piped returns a leader and its pipe to a follower, over wires of half a round trip, and the wire's end
// at the leader.
func piped(t *testing.T, m *members) (lead, follower *Transport, p *pipe) {
	t.Helper()
	m.delay = func() time.Duration { return roundTrip / 2 }
	lead, follower = m.open(t, "a", 10*time.Second), m.open(t, "b", 10*time.Second)
	lead.Attach(racing{state: raft.Leader})
	follower.Attach(racing{state: raft.Follower})
	lead.measured("b", roundTrip)
	if _, err := lead.AppendEntriesPipeline("b", "b"); err != raft.ErrPipelineReplicationNotSupported { //nolint:errorlint // raft compares
		t.Fatalf("a pipe without a connection: %v", err)
	}
	synctest.Wait() // it is dialed meanwhile
	got, err := lead.AppendEntriesPipeline("b", "b")
	if err != nil {
		t.Fatal(err)
	}
	p, _ = got.(*pipe)
	return lead, follower, p
}

// measured has a follower's round trip known.
func (t *Transport) measured(id raft.ServerID, trip time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range 8 {
		t.progressOf(id).way.add(time.Now(), trip)
	}
}

func (p *pipe) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.window.flights)
}

// TestAppendsOverlap: entries do not wait for the answers to those before, up to a bound; the answers come in order,
// and raft is told of each.
func TestAppendsOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done := far(follower)
		p.conn.(*wireEnd).hold(true) // no answer arrives
		const all = maxFlights + 16
		sent := make(chan error)
		go func() {
			for i := uint64(1); i <= all; i++ {
				if _, err := p.AppendEntries(appendOf(lead, i, i, 0), new(raft.AppendEntriesResponse)); err != nil {
					sent <- err
				}
			}
			close(sent)
		}()
		<-time.After(10 * roundTrip / 2)
		if n := p.inFlight(); n != maxFlights {
			t.Errorf("%d in flight, not %d", n, maxFlights)
		}
		p.conn.(*wireEnd).hold(false)
		for i := uint64(1); i <= all; i++ {
			f := <-p.Consumer()
			if lastOf(f.Request()) != i || !f.Response().Success || f.Error() != nil {
				t.Errorf("answer %d is to entry %d: %+v, %v", i, lastOf(f.Request()), f.Response(), f.Error())
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if match, _ := lead.Follower("b"); match != all || p.inFlight() != 0 {
			t.Errorf("match %d, %d in flight", match, p.inFlight())
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		done()
	})
}

// TestRefusedPipeEnds: the first refusal ends a pipe, and who sends never waits for who reads the answers. raft's own
// pipelining did: its reader left with the refusal, and its sender waited for good.
func TestRefusedPipeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done := far(follower)
		for i := range uint64(2 * maxFlights) { // nobody reads the answers, as after the first refusal
			f, err := p.AppendEntries(appendOf(lead, 2+i, 2+i, 0), new(raft.AppendEntriesResponse))
			if err != nil || i >= maxFlights && !errors.Is(f.Error(), errRefused) {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if match, _ := lead.Follower("b"); match != 0 {
			t.Errorf("match %d", match)
		}
		if f := <-p.Consumer(); f.Response().Success || lastOf(f.Request()) != 2 {
			t.Errorf("raft is told %+v of entry %d", f.Response(), lastOf(f.Request()))
		}
		if lead.peers["b"].pipe != nil {
			t.Error("notices are still sent by it")
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		done()
	})
}

// TestBrokenPipeAcknowledgesNothing: what was not answered when the connection broke is told to nobody, neither as
// stored nor as a contact: raft would count that for its lease.
func TestBrokenPipeAcknowledgesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done := far(follower)
		f, err := p.AppendEntries(appendOf(lead, 1, 3, 0), new(raft.AppendEntriesResponse))
		if err != nil {
			t.Fatal(err)
		}
		m.cut("b")
		if f.Error() == nil {
			t.Error("answered")
		}
		synctest.Wait()
		select {
		case f := <-p.Consumer():
			if _, over := f.(pipeEnd); !over {
				t.Errorf("raft is told of %+v", f.Response())
			}
		default:
			t.Error("raft's reader stays")
		}
		if match, at := lead.Follower("b"); match != 0 || !at.IsZero() {
			t.Errorf("match %d, heard at %v", match, at)
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		done()
	})
}

// TestSilentLeaderSendsNothing: neither entries nor notices pass a pipe of a leader whose disk hangs.
func TestSilentLeaderSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done := far(follower)
		lead.SetMuted(true)
		f, err := p.AppendEntries(appendOf(lead, 1, 1, 0), new(raft.AppendEntriesResponse))
		if err != nil || !errors.Is(f.Error(), ErrMuted) {
			t.Errorf("sent: %v", err)
		}
		if p.inFlight() != 0 {
			t.Error("in flight")
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		done()
	})
}

// TestWindowByModel: what is in flight is bounded, counts right, and leaves in order.
func TestWindowByModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		var model []*flight
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "sends") {
				n, size := rapid.IntRange(0, MaxEntries).Draw(t, "entries"), rapid.IntRange(0, 2*maxFlightBytes).Draw(t, "bytes")
				f := &flight{args: &raft.AppendEntriesRequest{Entries: make([]*raft.Log, n)}, size: size}
				if w.hasRoom(f) {
					w.push(f)
					model = append(model, f)
				} else if len(model) == 0 {
					t.Fatal("nothing is in flight, and nothing can be sent")
				}
			} else if f := w.oldest(); f != nil {
				if f != model[0] {
					t.Fatal("another is the oldest")
				}
				w.pop()
				model = model[1:]
			}
			entries, bytes := 0, 0
			for _, f := range model {
				entries, bytes = entries+len(f.args.Entries), bytes+f.size
			}
			if w.entries != entries || w.bytes != bytes || len(w.flights) != len(model) {
				t.Fatalf("counts %d entries, %d bytes, %d requests: %d, %d, %d are", w.entries, w.bytes, len(w.flights),
					entries, bytes, len(model))
			}
			if len(model) > 1 && (len(model) > maxFlights || entries > maxFlightEntries || bytes > maxFlightBytes) {
				t.Fatalf("%d requests, %d entries, %d bytes in flight", len(model), entries, bytes)
			}
		}
	})
}

// TestLargeAppendsAreParted: raft takes what it has handed to a pipe for sent, so all of it is.
func TestLargeAppendsAreParted(t *testing.T) {
	all := &raft.AppendEntriesRequest{Term: leaderTerm, PrevLogEntry: 4, PrevLogTerm: 3, LeaderCommitIndex: 6}
	for i := range uint64(6) {
		all.Entries = append(all.Entries, &raft.Log{Index: 5 + i, Term: 3 + i, Data: make([]byte, maxAppendBytes/2)})
	}
	prev, term := all.PrevLogEntry, all.PrevLogTerm
	parts := partsOf(all)
	for _, part := range parts {
		if part.PrevLogEntry != prev || part.PrevLogTerm != term || part.Term != leaderTerm ||
			part.LeaderCommitIndex != 6 || len(part.Entries) != 2 || part.Entries[0].Index != prev+1 {
			t.Errorf("%d entries from %d behind %d of term %d", len(part.Entries), part.Entries[0].Index,
				part.PrevLogEntry, part.PrevLogTerm)
		}
		last := part.Entries[len(part.Entries)-1]
		prev, term = last.Index, last.Term
	}
	if len(parts) != 3 || prev != 10 || len(all.Entries) != 6 {
		t.Errorf("%d parts to entry %d, of %d entries", len(parts), prev, len(all.Entries))
	}
}
