package transfer

import (
	"crypto/sha256"
	"errors"
	"fmt"
)

// Refusal says why a site gives no part of a blob. The numbers are those of the peer port.
type Refusal uint8

// The refusals; Granted is none.
const (
	Granted    Refusal = iota
	NotAllowed         // by the state of the site that is asked, the attempt does not entitle the asker to the blob
	NotHere            // it has no such blob
	Gone               // it had the blob, and its time there is over
	Behind             // its state is older than the asker's
	Busy               // it serves too many already
	Failed             // it cannot read the blob from its disk
	refusals
)

var refusalWords = [refusals]string{
	"", "by its state this site may not read that",
	"it has no such blob",
	"it kept that for as long as it had to, and has deleted it",
	"its state is not as new as this site's yet",
	"it serves too many others at the moment",
	"it cannot read that from its disk: its operator finds why in its log",
}

// String says why, for people.
func (r Refusal) String() string {
	if r < refusals {
		return refusalWords[r]
	}
	return "it refuses"
}

// Temporary reports whether asking again later may help.
func (r Refusal) Temporary() bool { return r == Behind || r == Busy || r == Failed }

// Errors of pulls, besides *RefusedError and the context's. The first of them goes by itself; ErrStalled may.
var (
	// ErrUnreachable reports that the other site's broker cannot be reached, or has gone in the middle.
	ErrUnreachable = errors.New("its broker cannot be reached")
	// ErrStalled reports that it sends next to nothing.
	ErrStalled = fmt.Errorf("its broker sent less than %d KiB/s for %s", leastRate>>10, stallAfter)
	// ErrPeer reports that it does not follow the protocol.
	ErrPeer = errors.New("its broker does not answer as it must: it is faulty, or hostile")
	// ErrSink reports that this site could not keep what came.
	ErrSink = errors.New("what came cannot be kept here")
)

// RefusedError is the other site's refusal.
type RefusedError struct {
	Refusal
	Hash [sha256.Size]byte // of what was asked for
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("blob %x is refused: %s", e.Hash, e.Refusal)
}
