package replica

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/internal/parallel"
)

var (
	_ coord.Proving   = (*Replica)(nil)
	_ coord.Preparing = (*Replica)(nil)
)

// Verifying a bundle takes some 65 µs, more than executing what is in most of them. So it is done while the entry is
// on its way into the log (Prepare), and what is left for Apply, before it takes the state. The state itself decides by
// the key that a site has then, and verifies again where another one was found here.

// Proofs implements coord.Proving.
func (r *Replica) Proofs() *coord.Proofs { return r.proofs }

// Bounds of what waits to be verified ahead: more is left for Apply.
const (
	maxAhead      = 256
	maxAheadBytes = 4 << 20
)

// ahead verifies the bundles of entries that are on their way, one entry after the other. The zero value is ready for
// use; its goroutine ends when nothing has come for a while.
type ahead struct {
	mu      sync.Mutex
	entries [][]byte
	bytes   int // of entries
	running bool
	kick    chan struct{} // signalled (capacity 1) when entries come while it runs
}

// lingers is how long the goroutine waits for more. Verifying needs a large stack, which a new one would have to grow
// with each entry.
const lingers = 50 * time.Millisecond

// Prepare implements coord.Preparing.
func (r *Replica) Prepare(entry []byte) {
	a := &r.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) == maxAhead || a.bytes+len(entry) > maxAheadBytes {
		return
	}
	a.entries = append(a.entries, entry)
	a.bytes += len(entry)
	if a.running {
		coord.Signal(a.kick)
		return
	}
	a.running, a.kick = true, make(chan struct{}, 1)
	go r.proveAhead(a.kick)
}

// proveAhead verifies what waits, until nothing has come from one tick to the next.
func (r *Replica) proveAhead(kick <-chan struct{}) {
	tick := time.NewTicker(lingers)
	defer tick.Stop()
	for idle := false; ; {
		for entry, more := r.ahead.next(); more; entry, more = r.ahead.next() {
			idle = false
			if bundles, err := command.Bundles(entry); err == nil {
				r.prove(bundles)
			}
		}
		select {
		case <-kick:
		case <-tick.C:
			if idle && r.ahead.end() {
				return
			}
			idle = true
		}
	}
}

// next takes the first entry that waits.
func (a *ahead) next() (entry []byte, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) == 0 {
		return nil, false
	}
	entry = a.entries[0]
	a.entries[0] = nil // what was taken is not kept
	if a.entries = a.entries[1:]; len(a.entries) == 0 {
		a.entries = nil
	}
	a.bytes -= len(entry)
	return entry, true
}

// end has the next entry begin a goroutine of its own, if nothing waits.
func (a *ahead) end() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = len(a.entries) > 0
	return !a.running
}

// prove verifies bundles by the keys that their sites have now, as far as that is not known already. What is not
// right, or not known here, the state will refuse.
func (r *Replica) prove(bundles []command.Bundle) {
	if len(bundles) == 0 {
		return
	}
	federation, keys := r.keysOf(bundles)
	parallel.Each(len(bundles), func(i int) { r.proofs.Prove(&bundles[i], federation, keys[i]) })
}

// keysOf returns the keys of bundles' sites, zero where there is none, and the federation that they sign for.
func (r *Replica) keysOf(bundles []command.Bundle) (federation [16]byte, keys []signature.Key) {
	keys = make([]signature.Key, len(bundles))
	r.View(func(s *fsm.State) {
		federation = s.Federation()
		for i := range bundles {
			m, _ := s.Member(bundles[i].Site)
			keys[i] = m.Key
		}
	})
	return federation, keys
}
