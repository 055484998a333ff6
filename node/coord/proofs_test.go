package coord

import (
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/identity"
)

// What was proven is remembered for its bytes, its signature, its federation and its key, and for nothing else; the
// oldest are forgotten.
func TestProofs(t *testing.T) {
	federation, key := [16]byte{1}, signature.Key{2}
	bundle := func(n int) command.Bundle { return command.Bundle{Signed: []byte{byte(n), byte(n >> 8)}} }
	known := func(p *Proofs, n int) bool {
		b := bundle(n)
		return p.Prove(&b, federation, key)
	}
	p := &Proofs{}
	for n := range maxProofs {
		b := bundle(n)
		p.Add(&b, federation, key)
		p.Add(&b, federation, key)
	}
	other, signed := bundle(1), bundle(1)
	signed.Signature[0] = 1
	if p.Prove(&other, [16]byte{2}, key) || p.Prove(&other, federation, signature.Key{3}) ||
		p.Prove(&signed, federation, key) || known(p, maxProofs) || known(nil, 1) {
		t.Error("something else is taken for proven")
	}
	b := bundle(1)
	if !p.Prove(&b, federation, key) || !b.IsBy(federation, key) || b.IsBy(federation, signature.Key{3}) {
		t.Error("what is remembered is not noted on the bundle, or for more")
	}
	for n := maxProofs; n < maxProofs+10; n++ {
		b := bundle(n)
		p.Add(&b, federation, key)
	}
	for n, want := range map[int]bool{0: false, 9: false, 10: true, maxProofs - 1: true, maxProofs + 9: true} {
		if known(p, n) != want {
			t.Errorf("bundle %d of %d: known %v", n, maxProofs+10, !want)
		}
	}
	if len(p.known) != maxProofs {
		t.Errorf("%d are kept", len(p.known))
	}
	(*Proofs)(nil).Add(&other, federation, key)
}

// Whoever asks for a bundle that is being verified waits for that, and is told the same; wrong ones stay unknown.
func TestProofsAreFoundOnce(t *testing.T) {
	key := identity.FromSeed([32]byte{1})
	federation, public := [16]byte{1}, signature.Key(key.Public())
	right := command.SignBundle(federation, "a", 1, []byte("x"), key.Sign)
	wrong := right
	wrong.Signed = []byte("y")
	p := &Proofs{}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			r, w := right, wrong
			if !p.Prove(&r, federation, public) || p.Prove(&w, federation, public) {
				t.Error("a right bundle is refused, or a wrong one taken")
			}
		})
	}
	all.Wait()
	if len(p.underWay) > 0 || len(p.order) != 1 || !p.Prove(&right, federation, public) ||
		(*Proofs)(nil).Prove(&wrong, federation, public) {
		t.Errorf("%d under way, %d known", len(p.underWay), len(p.order))
	}
}
