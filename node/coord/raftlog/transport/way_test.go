package transport

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestNearFollowerHasNoPipe: one that answers within the pace gets none, nor a connection for it; one that comes near
// loses it once all is answered, and is told of commits as before. On a LAN pipes parted entries that would have
// shared a follower's sync.
func TestNearFollowerHasNoPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		done, told := far(follower), drained(p)
		lead.measured("b", nearAt/2)
		f, err := p.AppendEntries(appendOf(lead, 1, 1, 0), new(raft.AppendEntriesResponse))
		if err != nil || f.Error() != nil || f.Response().LastLog != 1 {
			t.Errorf("the last request: %v, %+v", err, f.Response())
		}
		synctest.Wait()
		p.mu.Lock()
		ended := p.err
		p.mu.Unlock()
		if !errors.Is(ended, errNear) {
			t.Errorf("the pipe has ended with %v", ended)
		}
		wires := m.laidWires()
		for range 3 {
			if _, err := lead.AppendEntriesPipeline("b", "b"); err == nil {
				t.Error("a pipe to who is near")
			}
			<-time.After(roundTrip)
		}
		if n := m.laidWires(); n != wires {
			t.Errorf("%d connections are opened for it", n-wires)
		}
		_ = p.Close()
		<-told
		m.close(lead)
		m.close(follower)
		done()
	})
}

// TestWayNeedsSomeTrips: the first heartbeats, for which connections are opened, make nobody far.
func TestWayNeedsSomeTrips(t *testing.T) {
	var w way
	now := time.Unix(1_700_000_000, 0)
	for i, trip := range []time.Duration{3 * roundTrip, 2 * roundTrip, time.Millisecond} {
		if w.isFar() || w.isNear() {
			t.Errorf("known after %d heartbeats", i)
		}
		w.add(now, trip)
	}
	if w.isFar() || !w.isNear() {
		t.Error("not near after a quick one")
	}
	for range 6 {
		w.add(now, (nearAt+farAt)/2)
	}
	if w.isFar() || w.isNear() {
		t.Error("in between nothing changes")
	}
}

// TestWayThatGrew: answers to entries that take long have the way measured again, so that a member that is sent few
// heartbeats gets its pipe soon after it has moved away. A disk that is slow for good does so seldom.
func TestWayThatGrew(t *testing.T) {
	const again = time.Minute
	var w way
	now := time.Unix(1_700_000_000, 0)
	beat := func(trip time.Duration) {
		for range leastTrips {
			if !w.isDue(now, again) {
				t.Fatal("no heartbeat is due")
			}
			w.add(now, trip)
		}
	}
	beat(time.Millisecond)
	w.doubt(now, farAt-1, again)
	if w.isDue(now, again) {
		t.Error("a quick answer was a reason for doubt")
	}
	w.doubt(now, 2*roundTrip, again)
	if w.isNear() || w.isFar() {
		t.Error("known without having been measured")
	}
	beat(roundTrip)
	if !w.isFar() {
		t.Error("near still")
	}
	w = way{}
	beat(time.Millisecond)
	for i := range 120 { // a slow disk at a near member
		before := w.doubted
		w.doubt(now, time.Second, again)
		if doubts := w.doubted != before; doubts != (i%60 == 0) {
			t.Errorf("second %d: doubted %v", i, doubts)
		}
		for w.isDue(now, time.Hour) {
			w.add(now, time.Millisecond)
		}
		now = now.Add(time.Second)
	}
}

// TestHeartbeatsMeasureTheWay: entries wait for a disk, so they do not.
func TestHeartbeatsMeasureTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{delay: func() time.Duration { return time.Millisecond / 2 }}
		lead, follower := m.open(t, "a", 10*time.Second), m.open(t, "b", 10*time.Second)
		lead.Attach(racing{state: raft.Leader})
		follower.Attach(racing{state: raft.Follower})
		go func() {
			for rpc := range follower.Consumer() {
				q, _ := rpc.Command.(*raft.AppendEntriesRequest)
				if !isHeartbeat(q) {
					<-time.After(time.Second) // the disk
				}
				rpc.Respond(&raft.AppendEntriesResponse{Term: q.Term, LastLog: lastOf(q), Success: true}, nil)
			}
		}()
		for i := range uint64(leastTrips) {
			for _, q := range []*raft.AppendEntriesRequest{
				appendOf(lead, i+1, i+1, 0), {RPCHeader: lead.self, Term: leaderTerm},
			} {
				if err := lead.AppendEntries("b", "b", q, new(raft.AppendEntriesResponse)); err != nil {
					t.Error(err)
				}
			}
		}
		lead.mu.Lock()
		d, ok := lead.peers["b"].way.trip()
		lead.mu.Unlock()
		if !ok || d != time.Millisecond {
			t.Errorf("the round trip is %v, %v", d, ok)
		}
		m.close(lead)
		m.close(follower)
		close(follower.screened)
	})
}

// TestWhatWaitsBeforeIsNoStoring: a follower that stores one request after another has each wait for those before. A
// leader that was far, and whose own disk nobody waited for, looked quick beside it.
func TestWhatWaitsBeforeIsNoStoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{}
		lead, follower, p := piped(t, m)
		const disk = 10 * time.Millisecond
		go func() {
			for rpc := range follower.Consumer() {
				q, _ := rpc.Command.(*raft.AppendEntriesRequest)
				<-time.After(disk)
				rpc.Respond(&raft.AppendEntriesResponse{Term: q.Term, LastLog: lastOf(q), Success: true}, nil)
			}
		}()
		told := drained(p)
		for i := range uint64(32) {
			if _, err := p.AppendEntries(appendOf(lead, i+1, i+1, 0), new(raft.AppendEntriesResponse)); err != nil {
				t.Error(err)
			}
		}
		for p.inFlight() > 0 {
			<-time.After(roundTrip)
		}
		took, _ := lead.Syncs("b", time.Now())
		alone, ok := lead.Alone("b", time.Now())
		if !ok || alone != roundTrip+disk || took < roundTrip+10*disk {
			t.Errorf("%v alone, %v; %v with what waited before", alone, ok, took)
		}
		_ = p.Close()
		<-told
		m.close(lead)
		m.close(follower)
		close(follower.screened)
	})
}
