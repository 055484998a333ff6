package transport

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/latency"
)

// Who is near needs no pipe: a new entry waits for little more than the sync of those before it, and shares the next
// one with others that wait; sent at once it would be synced by itself. What tells is the round trip of heartbeats,
// which a follower answers without its disk.

const (
	// farAt is from which round trip on a follower gets a pipe.
	farAt = 4 * time.Millisecond
	// nearAt is below which round trip it loses it. Invariant: below farAt, so that a pipe does not come and go.
	nearAt = pipePace
	// leastTrips are measured before anything is said: the first takes longer, a connection is opened for it.
	leastTrips = 3
)

// wayQuiets is how many times Quiet.For may pass before the way to a member that does not vote is measured again.
const wayQuiets = 10

// way is how long requests take to a follower and back.
type way struct {
	trips    latency.Shortest
	measured int       // Invariant: at most leastTrips
	at       time.Time // of the last measurement; zero = there was none
	doubted  time.Time // when all of that was last forgotten; zero = never
}

func (w *way) add(now time.Time, took time.Duration) {
	w.trips.Add(now, took)
	w.measured, w.at = min(w.measured+1, leastTrips), now
}

// doubt forgets what was measured of a way that is no longer far from here if an answer to entries says otherwise: it
// has grown, or a disk was slow, so that it does so once in a while at most. A member that does not vote is sent few
// heartbeats, and would have to wait for its pipe for minutes.
func (w *way) doubt(now time.Time, took, again time.Duration) {
	if w.measured < leastTrips || w.isFar() || took < farAt || now.Sub(w.doubted) < again {
		return
	}
	*w = way{doubted: now}
}

// isDue reports whether a heartbeat has to measure it: it is not known, or was known for so long.
func (w *way) isDue(now time.Time, most time.Duration) bool {
	return w.measured < leastTrips || now.Sub(w.at) >= most
}

// trip returns the least round trip lately; false: it is not known.
func (w *way) trip() (time.Duration, bool) {
	d, ok := w.trips.Min(time.Time{})
	return d, ok && w.measured == leastTrips
}

func (w *way) isFar() bool {
	d, ok := w.trip()
	return ok && d >= farAt
}

func (w *way) isNear() bool {
	d, ok := w.trip()
	return ok && d < nearAt
}

// isNear reports whether a follower needs no pipe any more.
func (t *Transport) isNear(id raft.ServerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progressOf(id).way.isNear()
}
