package transport

import (
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
