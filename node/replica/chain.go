package replica

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// chainMagic begins a snapshot: magic · head of the chain · SHA-256 of these two · the state's own snapshot. Its
// last byte is the format's version.
const chainMagic = "cloudshare-chain\x01"

// Chain is the head of a hash chain. It says which entries, in which order, have led here:
// chain(n) = SHA-256(chain(n−1) · SHA-256(entry n)), zero before the first. It is no part of the state: equal states
// may have come about in different ways.
type Chain [sha256.Size]byte

// Next returns the head behind one entry more, whose SHA-256 is of.
func (h Chain) Next(of [sha256.Size]byte) Chain {
	var both [2 * sha256.Size]byte
	copy(both[:], h[:])
	copy(both[sha256.Size:], of[:])
	return sha256.Sum256(both[:])
}

// frozen is the state of one entry, with the head of the chain there.
type frozen struct {
	*fsm.Frozen
	chain Chain
}

var _ coord.Snapshot = frozen{}

// freeze returns a copy that stays as it is. REQUIRES: r.mu held for writing, for marks are set in the state.
func (r *Replica) freeze() frozen { return frozen{r.state.Snapshot(), r.chain} }

// Write implements coord.Snapshot.
func (f frozen) Write(w io.Writer) error {
	head := append([]byte(chainMagic), f.chain[:]...)
	sum := sha256.Sum256(head)
	if _, err := w.Write(append(head, sum[:]...)); err != nil {
		return fmt.Errorf("write chain: %w", err)
	}
	return f.Frozen.Write(w)
}

// ReadSnapshot reads what a replica's snapshot holds; see fsm.Restore.
func ReadSnapshot(src io.Reader) (Chain, *fsm.State, error) {
	chain, err := ReadChain(src)
	if err != nil {
		return chain, nil, err
	}
	state, err := fsm.Restore(src)
	return chain, state, err
}

// ReadChain reads what stands in front of the state in a snapshot.
func ReadChain(src io.Reader) (h Chain, err error) {
	var b [len(chainMagic) + 2*sha256.Size]byte
	if _, err = io.ReadFull(src, b[:]); err != nil {
		return h, fmt.Errorf("%w: read chain: %w", fsm.ErrBadSnapshot, err)
	}
	head, sum := b[:len(chainMagic)+len(h)], b[len(chainMagic)+len(h):]
	switch {
	case string(b[:len(chainMagic)]) != chainMagic:
		return h, fmt.Errorf("%w: it has no chain in this format: run the version that wrote it", fsm.ErrBadSnapshot)
	case sha256.Sum256(head) != [sha256.Size]byte(sum):
		return h, fmt.Errorf("%w: its chain is damaged", fsm.ErrBadSnapshot)
	}
	return Chain(head[len(chainMagic):]), nil
}
