package netlab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Link is how packets travel from one host to another, in one direction. The zero value
// carries each at once. They arrive in the order in which they were sent, as on one path.
type Link struct {
	Delay  time.Duration // half of a round trip, if the way back is alike
	Jitter time.Duration // each packet takes up to so much longer, evenly drawn
	Loss   float64       // share of packets that are lost, 0 to 1
	Rate   int64         // bytes a second, 0 = no bound
}

// queueTime is how much waits for a link's rate at most: what comes then is lost, as at a
// router. A packet always has room.
const queueTime = 200 * time.Millisecond

// Validate names the first thing that is wrong.
func (l Link) Validate() error {
	switch {
	case l.Delay < 0 || l.Delay > time.Minute:
		return fmt.Errorf("link: delay %s, must be 0 to 1m", l.Delay)
	case l.Jitter < 0 || l.Jitter > time.Minute:
		return fmt.Errorf("link: jitter %s, must be 0 to 1m", l.Jitter)
	case !(l.Loss >= 0 && l.Loss <= 1):
		return fmt.Errorf("link: loss %v, must be 0 to 1", l.Loss)
	case l.Rate < 0:
		return errors.New("link: a rate must not be negative")
	}
	return nil
}

// String says what differs from the zero link.
func (l Link) String() string {
	s := l.Delay.String()
	if l.Jitter > 0 {
		s += fmt.Sprintf(" +≤%s", l.Jitter)
	}
	if l.Loss > 0 {
		s += fmt.Sprintf(", %g%% lost", l.Loss*100)
	}
	if l.Rate > 0 {
		s += fmt.Sprintf(", %d B/s", l.Rate)
	}
	return s
}

// shaper decides what becomes of each packet of one direction. It is pure: the same seed,
// hosts, links, sizes and moments give the same answers.
type shaper struct {
	draws *rand.Rand
	free  time.Duration // from when the rate has room
	last  time.Duration // when the newest packet arrives
}

func newShaper(seed uint64, from, to int) *shaper {
	return &shaper{draws: rand.New(rand.NewPCG(seed, uint64(from)<<32|uint64(to)))}
}

// carry returns when a packet that is sent now arrives; ok is false if it is lost. Each
// packet takes two draws, whatever the link is: a changed link does not move later draws.
func (s *shaper) carry(l Link, now time.Duration, size int) (at time.Duration, ok bool) {
	lost, more := s.draws.Float64() < l.Loss, time.Duration(s.draws.Float64()*float64(l.Jitter))
	if lost {
		return 0, false
	}
	sent := now
	if l.Rate > 0 {
		begins := max(now, s.free)
		if begins-now > queueTime {
			return 0, false
		}
		sent = begins + time.Duration(float64(size)/float64(l.Rate)*float64(time.Second))
		s.free = sent
	}
	s.last = max(s.last, sent+l.Delay+more)
	return s.last, true
}
