package coord

import (
	"crypto/sha256"
	"sync"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// maxProofs is how many bundles Proofs remember: those of some seconds under load, 300 KB.
const maxProofs = 8192

// Proofs remember which bundles were found to be signed by which keys, so that Apply need not verify what was verified
// while the entry was on its way. They may forget, and know nothing that is wrong. Safe for concurrent use; nil
// remembers nothing.
type Proofs struct {
	mu    sync.Mutex
	known map[[32]byte]struct{} // Invariant: the digests in order
	order [][32]byte            // a ring, oldest at next
	next  int
	// underWay are bundles that are being verified; the channel is closed when that is known.
	underWay map[[32]byte]chan struct{}
}

// Proving is a [Machine] that goes by Proofs.
type Proving interface{ Proofs() *Proofs }

// ProofsOf returns a machine's proofs, nil if it has none.
func ProofsOf(m Machine) *Proofs {
	if p, proves := m.(Proving); proves {
		return p.Proofs()
	}
	return nil
}

// Preparing is a [Machine] that can do some of an entry's work ahead.
type Preparing interface {
	// Prepare is told of an entry that is on its way into the log, and may never get there. It does not block, and may
	// be called from any goroutine. The entry must not be changed any more.
	Prepare(entry []byte)
}

// proofOf names a bundle, the federation and the key that have proven it.
func proofOf(b *command.Bundle, federation [16]byte, key signature.Key) [32]byte {
	h := sha256.New()
	_, _ = h.Write(federation[:])
	_, _ = h.Write(key[:])
	_, _ = h.Write(b.Signature[:])
	_, _ = h.Write(b.Signed)
	return [32]byte(h.Sum(nil))
}

// Add remembers that the holder of a key has signed a bundle. REQUIRES: it was verified, or signed here.
func (p *Proofs) Add(b *command.Bundle, federation [16]byte, key signature.Key) {
	if p == nil {
		return
	}
	d := proofOf(b, federation, key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(d)
}

// add REQUIRES: p.mu held.
func (p *Proofs) add(d [32]byte) {
	if _, known := p.known[d]; known {
		return
	}
	if p.known == nil {
		p.known = make(map[[32]byte]struct{}, maxProofs)
	}
	if len(p.order) < maxProofs {
		p.order = append(p.order, d)
	} else {
		delete(p.known, p.order[p.next])
		p.order[p.next] = d
		p.next = (p.next + 1) % maxProofs
	}
	p.known[d] = struct{}{}
}

// Prove reports whether the holder of a key has signed a bundle, and remembers that it has. While another one finds
// that out, it waits: a bundle is verified once.
func (p *Proofs) Prove(b *command.Bundle, federation [16]byte, key signature.Key) bool {
	if p == nil {
		return b.IsBy(federation, key)
	}
	d := proofOf(b, federation, key)
	if waited := p.begin(d); waited && p.recall(b, d, federation, key) {
		return true
	} else if waited {
		return b.IsBy(federation, key) // a wrong one, or one that is forgotten already
	}
	ok := b.IsBy(federation, key)
	p.end(d, ok)
	return ok
}

// begin has a bundle count as being verified; waited: it did, and does not any more.
func (p *Proofs) begin(d [32]byte) (waited bool) {
	p.mu.Lock()
	if _, known := p.known[d]; known {
		p.mu.Unlock()
		return true
	}
	others := p.underWay[d]
	if others == nil {
		if p.underWay == nil {
			p.underWay = map[[32]byte]chan struct{}{}
		}
		p.underWay[d] = make(chan struct{})
	}
	p.mu.Unlock()
	if others != nil {
		<-others
	}
	return others != nil
}

// end says whether a bundle was found to be right.
func (p *Proofs) end(d [32]byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.underWay[d])
	delete(p.underWay, d)
	if ok {
		p.add(d)
	}
}

// recall notes on a bundle what is remembered of it, and reports whether that is something.
func (p *Proofs) recall(b *command.Bundle, d [32]byte, federation [16]byte, key signature.Key) bool {
	p.mu.Lock()
	_, known := p.known[d]
	p.mu.Unlock()
	if known {
		b.Proven(federation, key)
	}
	return known
}
