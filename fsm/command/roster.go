package command

import (
	"encoding/binary"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Bounds of the roster's commands.
const (
	// MaxInvitationMs is how long an invitation may stand: 30 days of log time.
	MaxInvitationMs = 30 * 24 * 3_600_000
	// MaxKeys bounds how often a site's key may be replaced.
	MaxKeys = 1 << 20
)

// Invite invites a site, by the command's site: whoever holds the secret half of Key may be admitted under the name,
// once, and once the electors agree. The result's Motion is what they decide on.
type Invite struct {
	Key     signature.Key
	Site    string // who is invited
	Elector bool   // it is to vote, if there are not enough electors by then
	ForMs   int64  // log time for which it stands, 1 … MaxInvitationMs
}

// Revoke ends an invitation: by the site that invited, or by an elector.
type Revoke struct{ Key signature.Key }

// Admit asks for what an invitation promises. It carries its own proof, so the command's site is any member that
// passes it on: neither that one nor the leader can put another key in.
type Admit struct {
	Invitation signature.Key
	Site       string
	Key        signature.Key // the site's from now on
	// ByInvitation and ByKey sign Signed: with the invitation's secret, and with the site's.
	ByInvitation, ByKey signature.Signature
}

// Purposes of signatures.
const (
	SignedAdmission = "cloudshare admission 1"
	SignedKey       = "cloudshare key 1"
)

// Signed returns what both signatures of an Admit sign, for SignedAdmission.
func (b *Admit) Signed(federation [16]byte) [][]byte {
	return [][]byte{federation[:], b.Invitation[:], []byte(b.Site), b.Key[:]}
}

// Rekey replaces a site's key, its recovery key, or both. It carries its own proof, as Admit does.
type Rekey struct {
	Site string
	// Generation is how often the site's keys were replaced before this: so none can be replayed.
	Generation uint64
	Key        signature.Key // the site's from now on
	// Recovery replaces Key when that is lost. Only itself can be replaced by it; a site that has none yet sets its
	// first one with its Key.
	Recovery signature.Key
	// ByRecovery says that By is by the recovery key, otherwise it is by the present Key. Both sign Signed.
	ByRecovery bool
	By, ByNew  signature.Signature
}

// Signed returns what both signatures of a Rekey sign, for SignedKey.
func (b *Rekey) Signed(federation [16]byte) [][]byte {
	return [][]byte{
		federation[:], []byte(b.Site), binary.BigEndian.AppendUint64(nil, b.Generation), b.Key[:], b.Recovery[:],
	}
}

// MotionKind is what a motion would do.
type MotionKind uint8

// The motions.
const (
	MotionAdmit     MotionKind     = iota + 1 // admit a site; made by an Invite
	MotionElector                             // give a site a vote
	MotionNoElector                           // take it
	MotionBan                                 // expel a site: nobody talks to it any more
	MotionUnban                               // take that back
	MotionRebind                              // give a site's name to another key, when both of its own are lost
	MotionPolicy                              // change the federation's parameters
	MotionForget                              // a site that is away will not come back: its waiting jobs end
	LastMotion      = MotionForget            // the greatest kind
)

var motionNames = [...]string{
	"", "admit", "elector", "no-elector", "ban", "unban", "rebind", "policy", "forget",
}

// String returns the motion's name in the API.
func (k MotionKind) String() string {
	if int(k) < len(motionNames) {
		return motionNames[k]
	}
	return "unknown"
}

// Motion proposes to the electors what none of them may do alone. The result's Motion is its number; the proposer, if
// it is an elector, has voted for it.
type Motion struct {
	What   MotionKind
	Site   string        // of all but a MotionPolicy, "" there
	Key    signature.Key // of a MotionRebind, else zero
	Params *Params       // of a MotionPolicy, else nil
}

// Vote is an elector's vote on an open motion. It may be changed until the motion is decided.
type Vote struct {
	Motion uint64
	Yes    bool
}

// GossipKey is the next key of the gossip between brokers, by the leader of Term.
type GossipKey struct {
	Term       uint64
	Generation uint64 // one more than that of the key before
	Key        [32]byte
}

// Validate checks the bounds.
func (b *Invite) Validate() error {
	return firstError(inKey("invitation's key", b.Key), inSite("site", b.Site), within("for_ms", b.ForMs, 1, MaxInvitationMs))
}

// Validate implements Body.
func (b *Revoke) Validate() error { return inKey("invitation's key", b.Key) }

// Validate checks the bounds, and no signature.
func (b *Admit) Validate() error {
	return firstError(inKey("invitation's key", b.Invitation), inSite("site", b.Site), inKey("key", b.Key))
}

// Validate checks the bounds, and no signature.
func (b *Rekey) Validate() error {
	return firstError(inSite("site", b.Site), inKey("key", b.Key), within("generation", int64(b.Generation), 0, MaxKeys))
}

// Validate checks that the motion is of a kind that can be proposed, and holds what that kind needs.
func (b *Motion) Validate() error {
	if b.What <= MotionAdmit || b.What > LastMotion {
		return within("motion", int64(b.What), int64(MotionElector), int64(LastMotion))
	}
	policy, rebind := b.What == MotionPolicy, b.What == MotionRebind
	if (b.Params != nil) != policy || (b.Site == "") != policy || (b.Key != signature.Key{}) != rebind {
		return fmt.Errorf("%w: motion %s does not hold what it would change, or more than that", ErrOutOfBounds, b.What)
	}
	if policy {
		return b.Params.Validate()
	}
	return inSite("site", b.Site)
}

// Validate checks that the motion's number exists.
func (b *Vote) Validate() error {
	if b.Motion == 0 {
		return fmt.Errorf("%w: motions are numbered from 1", ErrOutOfBounds)
	}
	return nil
}

// Validate checks that there is a key.
func (b *GossipKey) Validate() error {
	if b.Generation == 0 || b.Key == [32]byte{} {
		return fmt.Errorf("%w: a gossip key of generation %d, or none", ErrOutOfBounds, b.Generation)
	}
	return nil
}

func inKey(field string, k signature.Key) error {
	if k == (signature.Key{}) {
		return fmt.Errorf("%w: %s is zero", ErrOutOfBounds, field)
	}
	return nil
}
