package replica

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
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

// maxAhead bounds the bytes of entries whose bundles are verified ahead: more wait for Apply.
const maxAhead = 4 << 20

// ahead is what is verified ahead now.
type ahead struct{ bytes atomic.Int64 }

// Prepare implements coord.Preparing.
func (r *Replica) Prepare(entry []byte) {
	size := int64(len(entry))
	if r.ahead.bytes.Add(size) > maxAhead {
		r.ahead.bytes.Add(-size)
		return
	}
	go func() {
		defer r.ahead.bytes.Add(-size)
		if bundles, err := command.Bundles(entry); err == nil {
			r.prove(bundles)
		}
	}()
}

// prove verifies bundles by the keys that their sites have now, as far as that is not known already. What is not
// right, or not known here, the state will refuse.
func (r *Replica) prove(bundles []command.Bundle) {
	if len(bundles) == 0 {
		return
	}
	federation, keys := r.keysOf(bundles)
	unknown := make([]int, 0, len(bundles))
	for i := range bundles {
		if keys[i] != (signature.Key{}) && !r.proofs.Recall(&bundles[i], federation, keys[i]) {
			unknown = append(unknown, i)
		}
	}
	inParallel(unknown, func(i int) {
		if b := &bundles[i]; b.IsBy(federation, keys[i]) {
			r.proofs.Add(b, federation, keys[i])
		}
	})
}

// inParallel calls f with each of some numbers, on as many processors as there are.
func inParallel(of []int, f func(int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(of); i = int(next.Add(1)) - 1 {
			f(of[i])
		}
	}
	var others sync.WaitGroup
	for range min(len(of), runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
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
