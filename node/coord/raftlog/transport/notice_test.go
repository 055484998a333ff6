package transport

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// roundTrip over the wires of these tests.
const roundTrip = 100 * time.Millisecond

// far answers a follower's requests as raft does that stores all entries. Once the test has ended its
// member, done returns when it first heard of each commit.
func far(tr *Transport) (done func() map[uint64]time.Time) {
	heard, over := map[uint64]time.Time{}, make(chan struct{})
	last := uint64(0)
	go func() {
		defer close(over)
		for rpc := range tr.Consumer() {
			q, _ := rpc.Command.(*raft.AppendEntriesRequest)
			stored := q.PrevLogEntry <= last
			if stored {
				last = max(last, lastOf(q))
				for c := commitIn(q); c > 0 && heard[c].IsZero(); c-- {
					heard[c] = time.Now()
				}
			}
			rpc.Respond(&raft.AppendEntriesResponse{Term: q.Term, LastLog: last, Success: stored}, nil)
		}
	}()
	return func() map[uint64]time.Time {
		close(tr.screened)
		<-over
		return heard
	}
}

func entriesFrom(from, to uint64) (out []*raft.Log) {
	for i := from; i <= to; i++ {
		out = append(out, &raft.Log{Index: i, Term: leaderTerm, Type: raft.LogCommand, Data: []byte("x")})
	}
	return out
}

func appendOf(tr *Transport, from, to, commit uint64) *raft.AppendEntriesRequest {
	q := &raft.AppendEntriesRequest{
		RPCHeader: tr.self, Term: leaderTerm, PrevLogEntry: from - 1, PrevLogTerm: leaderTerm,
		Entries: entriesFrom(from, to), LeaderCommitIndex: commit,
	}
	if from == 1 {
		q.PrevLogTerm = 0
	}
	return q
}

// TestCommitsAreToldAtOnce: a follower hears of a commit half a round trip after it, though it has not acknowledged the
// entry by then, and though other entries are in flight.
func TestCommitsAreToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done, told := far(follower), drained(p)
		send := func(from, to uint64) {
			if _, err := p.AppendEntries(appendOf(lead, from, to, 0), new(raft.AppendEntriesResponse)); err != nil {
				t.Errorf("entries %d to %d: %v", from, to, err)
			}
		}
		send(1, 1)
		<-time.After(2 * roundTrip)
		lead.Committed(&raft.Log{Index: 1, Term: leaderTerm})
		<-time.After(2 * roundTrip)
		begun := time.Now()
		go send(2, 2)
		go func() {
			<-time.After(time.Millisecond)
			send(3, 3)
		}()
		<-time.After(10 * time.Millisecond) // near voters have acknowledged it, this one has not
		lead.Committed(&raft.Log{Index: 2, Term: leaderTerm})
		<-time.After(10 * time.Millisecond)
		lead.Committed(&raft.Log{Index: 3, Term: leaderTerm})
		<-time.After(3 * roundTrip)
		lead.mu.Lock()
		n := lead.peers["b"].commits
		lead.mu.Unlock()
		if n.told != 3 || n.waiting != 0 || n.running {
			t.Errorf("at rest: %+v", n)
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		<-told
		heard := done()
		for i, want := range map[uint64]time.Duration{
			2: roundTrip/2 + 10*time.Millisecond,
			3: roundTrip/2 + 20*time.Millisecond,
		} {
			if got := heard[i].Sub(begun); got != want {
				t.Errorf("the follower heard of commit %d after %v, not %v", i, got, want)
			}
		}
	})
}

// drained reads what raft's reader would; the channel is closed once the pipe has ended.
func drained(p *pipe) chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-p.Consumer():
			case <-p.closed:
				return
			}
		}
	}()
	return over
}

// TestOneNoticeWithoutPipe: where no pipe exists, one notice is under way at a time, whatever is committed meanwhile,
// and none before the acknowledgement of its entry, which it could overtake. There were up to eight, each by a
// connection of its own.
func TestOneNoticeWithoutPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{delay: func() time.Duration { return roundTrip / 2 }}
		lead, follower := m.open(t, "a", 10*time.Second), m.open(t, "b", 10*time.Second)
		lead.Attach(racing{state: raft.Leader})
		follower.Attach(racing{state: raft.Follower})
		done := far(follower)
		send := func(from, to uint64) {
			if err := lead.AppendEntries("b", "b", appendOf(lead, from, to, 0), new(raft.AppendEntriesResponse)); err != nil {
				t.Error(err)
			}
		}
		send(1, 1)
		go send(2, 20)
		<-time.After(roundTrip / 4)
		lead.Committed(&raft.Log{Index: 2, Term: leaderTerm})
		if n, told := m.laidWires(), lead.toldTo("b"); n != 1 || told.waiting != 0 {
			t.Errorf("%d connections, %+v: told before the acknowledgement", n, told)
		}
		<-time.After(roundTrip)
		for i := uint64(3); i <= 20; i++ {
			lead.Committed(&raft.Log{Index: i, Term: leaderTerm})
			<-time.After(2 * noticePace)
			if n := lead.toldTo("b"); n.waiting > 1 {
				t.Errorf("%d notices are under way", n.waiting)
			}
		}
		<-time.After(3 * roundTrip)
		if n, told := m.laidWires(), lead.toldTo("b"); n > 2 || told.told != 20 {
			t.Errorf("%d connections; in the end: %+v", n, told)
		}
		m.close(lead)
		m.close(follower)
		done()
	})
}

// toldTo returns what a follower has been told once all rest.
func (t *Transport) toldTo(id raft.ServerID) commitNews {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progressOf(id).commits
}

// leading is a leader's view whose log goes to last.
type leading struct {
	racing
	last *atomic.Uint64
}

// LastIndex implements View.
func (l leading) LastIndex() uint64 { return l.last.Load() }

// TestNoNoticeWhereEntriesFollow: while the leader has entries that are yet to be sent to a follower, their request
// tells of a commit; one that was made before the commit is followed by a notice.
func TestNoNoticeWhereEntriesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done, told := far(follower), drained(p)
		var last atomic.Uint64
		last.Store(3)
		lead.Attach(leading{racing{state: raft.Leader}, &last})
		send := func(i, commit uint64) {
			if _, err := p.AppendEntries(appendOf(lead, i, i, commit), new(raft.AppendEntriesResponse)); err != nil {
				t.Error(err)
			}
		}
		send(1, 0)
		<-time.After(2 * roundTrip)
		send(2, 0)
		lead.Committed(&raft.Log{Index: 1, Term: leaderTerm})
		if n := lead.toldTo("b"); n.waiting != 0 {
			t.Errorf("a notice though entry 3 follows: %+v", n)
		}
		send(3, 1)
		if n := lead.toldTo("b"); n.waiting != 0 || n.telling != 1 {
			t.Errorf("entry 3 tells of it: %+v", n)
		}
		last.Store(4)
		lead.Committed(&raft.Log{Index: 3, Term: leaderTerm})
		send(4, 1)
		if n := lead.toldTo("b"); n.waiting != 1 || n.telling != 3 {
			t.Errorf("entry 4 does not tell of 3, and nothing else does: %+v", n)
		}
		<-time.After(2 * roundTrip)
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		<-told
		done()
	})
}
