package transport

import (
	"math/rand/v2"
	"sync"
	"time"
)

// faults strike a group of members, one after another.
type faults struct {
	mu    sync.Mutex
	rnd   *rand.Rand
	most  time.Duration   // of a wire's delay
	alone map[string]bool // members that cannot be dialed, and dial nobody
}

func newFaults(rnd *rand.Rand) *faults {
	return &faults{rnd: rnd, most: 50 * time.Millisecond, alone: map[string]bool{}}
}

// delay is drawn for each write, so that wires overtake each other.
func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.rnd.Int64N(int64(f.most))) + time.Microsecond
}

func (f *faults) refuses(from, to string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alone[from] || f.alone[to]
}

func (f *faults) draw(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rnd.Int64N(n)
}

// strike has something happen to a member, and a while pass.
func (f *faults) strike(r *rafts, site string) {
	n := r.node(site)
	switch f.draw(9) {
	case 0: // connections are lost, and what is under way on them
		r.cut(site)
	case 1: // a member is cut off
		f.set(func() { f.alone[site] = true })
		r.cut(site)
		<-time.After(time.Duration(f.draw(int64(3 * time.Second))))
		f.set(func() { delete(f.alone, site) })
	case 2, 3: // entries cannot be stored
		n.store.bad.Store(true)
		<-time.After(time.Duration(f.draw(int64(300 * time.Millisecond))))
		n.store.bad.Store(false)
	case 4: // a member starts again
		r.stop(site)
		<-time.After(time.Duration(f.draw(int64(3 * time.Second))))
		r.start(site, nil)
	case 5: // another one leads
		_ = n.LeadershipTransfer().Error()
	case 6: // what a member lacks may be gone from the logs
		_ = n.Snapshot().Error()
	case 7:
		most := time.Duration(1+f.draw(200)) * time.Millisecond
		f.set(func() { f.most = most })
	case 8: // a leader's disk hangs
		n.trans.SetMuted(true)
		<-time.After(time.Duration(f.draw(int64(2 * time.Second))))
		n.trans.SetMuted(false)
	}
	<-time.After(time.Duration(f.draw(int64(2 * time.Second))))
}

func (f *faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}
