package raftlog

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/latency"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Voters measure the round trips between them, each to all others, and tell each other what they have measured. So
// whoever leads, or will, knows how far each voter is from a majority.

// trips are round trips between voters, by the word of one end on the other.
type trips map[string]map[string]time.Duration

// between returns the round trip of two voters: the greater of both ends' words. One that lies does not bring itself
// nearer than the other end says, and without the other's word nobody is near.
func (t trips) between(a, b string) (d time.Duration, ok bool) {
	there, ok := t[a][b]
	back, too := t[b][a]
	return max(there, back), ok && too
}

const (
	// maxTrip is the longest round trip that is believed: an answer does not take longer.
	maxTrip = time.Minute
	// tripRounds is for how many rounds of questions a measurement counts.
	tripRounds = 8
)

// tripWatch is what a voter has measured, and what the others say that they have. Its methods may be called from any
// goroutine.
type tripWatch struct {
	keep time.Duration // for so long a measurement counts

	mu   sync.Mutex
	own  map[string]*latency.Shortest // Invariant: of the other voters only.
	said map[string]tripWords         // by voter. Invariant: as own.
}

// tripWords are what a voter said of its round trips.
type tripWords struct {
	at time.Time
	to map[string]time.Duration
}

func newTripWatch(every time.Duration) *tripWatch {
	return &tripWatch{keep: tripRounds * every, own: map[string]*latency.Shortest{}, said: map[string]tripWords{}}
}

// watch forgets all but these voters.
func (w *tripWatch) watch(voters []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for site := range w.own {
		if !slices.Contains(voters, site) {
			delete(w.own, site)
			delete(w.said, site)
		}
	}
	for _, site := range voters {
		if w.own[site] == nil {
			w.own[site] = &latency.Shortest{}
		}
	}
}

// note takes one measurement, and what the voter says of its own.
func (w *tripWatch) note(site, self string, at time.Time, took time.Duration, words map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.own[site]
	if own == nil {
		return
	}
	own.Add(at, max(took, time.Microsecond))
	said := tripWords{at: at, to: map[string]time.Duration{}}
	for other, us := range words {
		if (other == self || w.own[other] != nil) && us > 0 && us <= maxTrip.Microseconds() {
			said.to[other] = time.Duration(us) * time.Microsecond
		}
	}
	w.said[site] = said
}

// measured returns this voter's round trips to the others.
func (w *tripWatch) measured(now time.Time) map[string]time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]time.Duration{}
	for site, own := range w.own {
		if d, ok := own.Min(now.Add(-w.keep)); ok {
			out[site] = d
		}
	}
	return out
}

// words returns them as an answer says them, in microseconds.
func (w *tripWatch) words(now time.Time) map[string]int64 {
	out := map[string]int64{}
	for site, d := range w.measured(now) {
		out[site] = max(d.Microseconds(), 1)
	}
	return out
}

// table returns all that is known now.
func (w *tripWatch) table(self string, now time.Time) trips {
	t := trips{self: w.measured(now)}
	w.mu.Lock()
	defer w.mu.Unlock()
	for site, said := range w.said {
		if now.Sub(said.at) <= w.keep {
			t[site] = said.to // no map in it changes
		}
	}
	return t
}

// measureTrips asks all other voters once, if this member is a voter.
func (l *Log) measureTrips(ctx context.Context) {
	others := l.votersBeside()
	names := make([]string, len(others))
	for i, s := range others {
		names[i] = string(s.ID)
	}
	l.leadership.trips.watch(names)
	ctx, cancel := context.WithTimeout(ctx, l.t.rpc/2)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range others {
		wg.Go(func() {
			to := relay.Peer{Site: string(s.ID), Addr: transport.HostPort(s.Address)}
			if words, took, ok := l.dialer.askTrips(ctx, to); ok {
				l.leadership.trips.note(to.Site, l.cfg.Site, time.Now(), took, words)
			}
		})
	}
	wg.Wait()
}

// askTrips asks a voter for its round trips, and measures the one to it. The answer has to repeat a word of the
// question that nobody can guess: one that was on its way before the question would make its sender near to everybody.
func (d dialer) askTrips(ctx context.Context, to relay.Peer) (words map[string]int64, took time.Duration, ok bool) {
	word := rand.Text()
	a, took, err := d.timedJoin(ctx, to, joinRequest{Who: true, Trips: word})
	if err != nil || a.Site != to.Site || a.Asked != word {
		return nil, 0, false
	}
	return a.Trips, took, true
}

// votersBeside returns the other voters, none if this member is none.
func (l *Log) votersBeside() []raft.Server {
	voters := slices.DeleteFunc(slices.Clone(l.raft.GetConfiguration().Configuration().Servers),
		func(s raft.Server) bool { return s.Suffrage != raft.Voter })
	others := slices.DeleteFunc(slices.Clone(voters), func(s raft.Server) bool { return string(s.ID) == l.cfg.Site })
	if len(others) == len(voters) {
		return nil
	}
	return others
}
