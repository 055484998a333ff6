package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestNewerTermEndsPipe: raft's reader leaves at an answer of a newer term, whether or not that accepts. A follower
// that said yes in one left the next answer with nobody, and who waited for room, so the leader's shutdown, waited for
// good.
func TestNewerTermEndsPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for rpc := range follower.Consumer() {
				rpc.Respond(&raft.AppendEntriesResponse{Term: leaderTerm + 1, Success: true}, nil)
			}
		}()
		p.conn.(*wireEnd).hold(true)
		for i := range uint64(maxFlights) {
			if _, err := p.AppendEntries(appendOf(lead, 1+i, 1+i, 0), new(raft.AppendEntriesResponse)); err != nil {
				t.Error(err)
			}
		}
		sent := make(chan raft.AppendFuture, 1)
		go func() { // needs the room of many
			large := appendOf(lead, maxFlights+1, maxFlights+MaxEntries, 0)
			f, _ := p.AppendEntries(large, new(raft.AppendEntriesResponse))
			sent <- f
		}()
		p.conn.(*wireEnd).hold(false)
		if f := <-p.Consumer(); f.Response().Term != leaderTerm+1 { // raft's reader leaves here
			t.Errorf("raft is told %+v", f.Response())
		}
		select {
		case f := <-sent:
			if f.Error() == nil {
				t.Error("the pipe goes on")
			}
		case <-time.After(time.Minute):
			t.Error("who sends waits for good")
		}
		_ = p.Close()
		m.close(lead)
		m.close(follower)
		close(follower.screened)
		<-over
	})
}

// TestSlowFollowerCatchesUp: a follower whose answers were late for a while has all within moments, though nothing more
// comes. A pipe sent it one request in CommitTimeout: it stayed behind for a third of a minute.
func TestSlowFollowerCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{delay: func() time.Duration { return 5 * time.Millisecond }}
		r := openRafts(t, m, "a", "b", "cc")
		site, lead := r.leader()
		if err := lead.Apply([]byte("first"), 0).Error(); err != nil {
			t.Fatal(err)
		}
		c := lead.ReloadableConfig()
		c.TrailingLogs, c.SnapshotThreshold = 100000, 100000
		if err := lead.ReloadConfig(c); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second)
		slow := "b"
		if site == slow {
			slow = "cc"
		}
		lead.trans.mu.Lock()
		conn, _ := lead.trans.peers[raft.ServerID(slow)].pipe.conn.(*wireEnd)
		lead.trans.mu.Unlock()
		conn.hold(true)
		for range 4000 {
			lead.Apply([]byte("x"), 0)
			<-time.After(500 * time.Microsecond)
		}
		conn.hold(false)
		begun := time.Now()
		for len(r.node(slow).state.applied()) < 4001 {
			<-time.After(time.Millisecond)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("it was behind for %v", took)
		}
		<-time.After(2 * time.Second)
		_ = onTheWire(t, lead.trans) // and both have a pipe again
		r.stopAll()
	})
}
