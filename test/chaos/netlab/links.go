package netlab

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// underWay bounds the packets that are on one link at a time; more are lost.
const underWay = 16384

// Links carry what no cut drops; safe for concurrent use. Without a link a packet arrives
// at once.
type Links struct {
	mu    sync.RWMutex
	links map[way]Link
	pipes map[way]*pipe
	seed  uint64
	began time.Time
	shut  chan struct{} // closed with the lab
	wg    sync.WaitGroup
}

// way is one direction between two hosts.
type way struct{ from, to int }

// SetLinks replaces all links, by the hosts at their ends; the draws begin again from the
// seed. What is under way arrives as it would have.
func (l *Links) SetLinks(seed uint64, between func(from, to int) Link, hosts int) error {
	links := map[way]Link{}
	for from := 1; from <= hosts; from++ {
		for to := 1; to <= hosts; to++ {
			link := between(from, to)
			if err := link.Validate(); err != nil {
				return fmt.Errorf("%d→%d: %w", from, to, err)
			}
			if from != to && link != (Link{}) {
				links[way{from, to}] = link
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links, l.seed = links, seed
	for w, p := range l.pipes {
		p.reseed(newShaper(seed, w.from, w.to))
	}
	return nil
}

// carry has a packet arrive by write, now or later, or never. The packet's bytes are the
// caller's again afterwards.
func (l *Links) carry(w way, packet []byte, write func([]byte)) {
	l.mu.RLock()
	link, p := l.links[w], l.pipes[w]
	l.mu.RUnlock()
	if p == nil && link != (Link{}) {
		p = l.open(w, write)
	}
	if p == nil || link == (Link{}) && p.held.Load() == 0 {
		write(packet)
		return
	}
	p.send(link, time.Since(l.began), packet)
}

// open starts the pipe of one direction. Only one goroutine carries what comes from a host.
func (l *Links) open(w way, write func([]byte)) *pipe {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &pipe{queue: make(chan parcel, underWay), shaper: newShaper(l.seed, w.from, w.to)}
	if l.pipes == nil {
		l.pipes = map[way]*pipe{}
	}
	l.pipes[w] = p
	l.wg.Go(func() { p.run(l.began, l.shut, write) })
	return p
}

// close forgets what is under way and waits for the pipes.
func (l *Links) close() {
	close(l.shut)
	l.wg.Wait()
}

// parcel is a packet and when it arrives, since the lab's beginning.
type parcel struct {
	at   time.Duration
	data []byte
}

// pipe is one direction with packets under way.
type pipe struct {
	queue chan parcel
	held  atomic.Int64 // packets in it

	mu     sync.Mutex
	shaper *shaper
}

func (p *pipe) reseed(s *shaper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.free, s.last = p.shaper.free, p.shaper.last
	p.shaper = s
}

func (p *pipe) send(link Link, now time.Duration, packet []byte) {
	p.mu.Lock()
	at, ok := p.shaper.carry(link, now, len(packet))
	p.mu.Unlock()
	if !ok {
		return
	}
	p.held.Add(1)
	select {
	case p.queue <- parcel{at, append([]byte(nil), packet...)}:
	default:
		p.held.Add(-1)
	}
}

// run delivers in order until shut is closed.
func (p *pipe) run(began time.Time, shut <-chan struct{}, write func([]byte)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-shut:
			return
		case next := <-p.queue:
			timer.Reset(next.at - time.Since(began))
			select {
			case <-shut:
				return
			case <-timer.C:
			}
			write(next.data)
			p.held.Add(-1)
		}
	}
}

// RoundTrips are times between hosts: those between i+1 and j+1 at [i][j]. Only what is
// above the diagonal counts.
type RoundTrips [][]time.Duration

// EvenRoundTrips are the same between all of n hosts.
func EvenRoundTrips(n int, rtt time.Duration) RoundTrips {
	out := make(RoundTrips, n)
	for i := range out {
		out[i] = make([]time.Duration, n)
		for j := range out[i] {
			if i != j {
				out[i][j] = rtt
			}
		}
	}
	return out
}

// MixedRoundTrips are of sites in different places: all within 10 ms, but for the last one but one at 80 ms of every
// other one, and the last one at 150 ms.
func MixedRoundTrips(n int) RoundTrips {
	out := EvenRoundTrips(n, 10*time.Millisecond)
	for at, rtt := range map[int]time.Duration{n - 2: 80 * time.Millisecond, n - 1: 150 * time.Millisecond} {
		for other := range max(at, 0) {
			out[other][at], out[at][other] = rtt, rtt
		}
	}
	return out
}

// Between returns the round trip of two hosts, which count from 1; 0 for others.
func (r RoundTrips) Between(a, b int) time.Duration {
	a, b = min(a, b), max(a, b)
	if a < 1 || b > len(r) || b > len(r[a-1]) || a == b {
		return 0
	}
	return r[a-1][b-1]
}

// ErrNoMatrix says that round trips name fewer hosts than a row of theirs.
var ErrNoMatrix = errors.New("round trips: each host needs a row with all hosts")

// SetRoundTrips gives each direction half of a pair's time; jitter, loss and rate are the
// same for all. Hosts that the times do not name are as near as before links were set.
func (l *Lab) SetRoundTrips(seed uint64, times RoundTrips, rest Link) error {
	for _, row := range times {
		if len(row) != len(times) {
			return ErrNoMatrix
		}
	}
	return l.SetLinks(seed, func(from, to int) Link {
		if from > len(times) || to > len(times) {
			return Link{}
		}
		link := rest
		link.Delay = times.Between(from, to) / 2
		return link
	}, len(l.Hosts))
}
