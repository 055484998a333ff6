package raftlog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Errors of Open; each message names the directory and the remedy.
var (
	// ErrExistingData, ErrNoData, ErrLocked, ErrIdentity: see relay's.
	ErrExistingData = relay.ErrExistingData
	ErrNoData       = relay.ErrNoData
	ErrLocked       = relay.ErrLocked
	ErrIdentity     = relay.ErrIdentity
	// ErrEpoch: the federation went on without this member, or this member
	// without the other: they are of different epochs (recover.go).
	ErrEpoch = errors.New("another epoch of the federation")
	// ErrUnfinished: a recovery was interrupted; it can only be gone on with.
	ErrUnfinished = errors.New("a recovery was interrupted")
	// ErrNoLoss: the members that answer need no recovery.
	ErrNoLoss = errors.New("nothing to recover from")
	// ErrConfig: a Config that cannot work.
	ErrConfig = relay.ErrConfig
)

// ErrStalled is in what Log.Err returns when the disk has not answered for too
// long.
var ErrStalled = errors.New("the disk does not answer")

// Profile selects the timing.
type Profile uint8

// The profiles.
const (
	LAN Profile = iota // members a few milliseconds apart
	WAN                // members up to some hundred milliseconds apart
)

// Config of a member. Site, Node, Dir, Listen and Machine are required.
type Config struct {
	Site       string   // this member's id; a DNS label
	Node       [16]byte // identity of the data directory
	Federation [16]byte // zero with Join: take it from the federation joined
	Dir        string   // created if absent

	// Listen is the peer address to bind, host:port; port 0 picks one.
	// Advertise is what others dial; empty means the bound address.
	Listen, Advertise string

	// Exactly one of Bootstrap and Join on an empty directory, neither on one
	// in use, but for Join as long as no configuration has come. Join holds peer addresses of any members.
	Bootstrap bool
	Join      []string // also where a join is not over, in place of the peers before

	// Known returns the peer addresses at which a site may be, by what others tell:
	// hints, tried where the configured one fails. May be nil; must not block.
	Known func(site string) []string
	// Waiting is called while Open waits to be admitted, with the peers that it asks
	// and what they said last. May be nil.
	Waiting func(through []string, why error)

	// Evidence is the folder in which this member keeps states should it have to stop
	// because its own differs; "" keeps none. Open refuses as long as one is there.
	Evidence string

	Profile Profile
	Machine coord.Machine
	Logger  zerolog.Logger
	Hooks   Hooks

	// timing replaces the profile's timing in tests.
	timing *timing
	// net replaces the network, lookup the names, and disk wraps the store, in tests.
	net    *relay.Network
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	disk   func(disk) disk
}

// Hooks observe; each may be nil, must not block, and may be called from any
// goroutine.
type Hooks struct {
	Entry   func(commands, bytes int)       // the lead sent an entry to raft
	Store   func(took time.Duration, n int) // n entries were synced
	Forward func(groups int)                // a frame of calls went to the lead
	Lead    func(site string)               // the lead changed; "" = none
	// HandOver: this leader hands over, for "unfit" (SetUnfit) or "slow_disk".
	HandOver func(reason string)
}

// Validate reports the first reason why the configuration cannot work.
func (c *Config) Validate() error {
	switch {
	case !fsm.ValidSite(c.Site):
		return fmt.Errorf("%w: site name %.80q is not a DNS label", ErrConfig, c.Site)
	case c.Node == [16]byte{}:
		return fmt.Errorf("%w: node id is zero", ErrConfig)
	case c.Dir == "":
		return fmt.Errorf("%w: no data directory", ErrConfig)
	case c.Machine == nil:
		return fmt.Errorf("%w: no state machine", ErrConfig)
	case c.Profile > WAN:
		return fmt.Errorf("%w: profile %d does not exist", ErrConfig, c.Profile)
	case c.Bootstrap && len(c.Join) > 0:
		return fmt.Errorf("%w: bootstrap and join exclude each other", ErrConfig)
	case c.Bootstrap && c.Federation == [16]byte{}:
		return fmt.Errorf("%w: bootstrap needs a federation id", ErrConfig)
	}
	return c.validateAddresses()
}

func (c *Config) validateAddresses() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("%w: listen address %.80q: %w", ErrConfig, c.Listen, err)
	}
	if c.Advertise != "" {
		if err := relay.CheckAddress(c.Advertise); err != nil {
			return fmt.Errorf("%w: advertise address: %w", ErrConfig, err)
		}
	}
	for _, a := range c.Join {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("%w: join address %.80q: %w", ErrConfig, a, err)
		}
	}
	return nil
}

// timing is everything that a profile decides; DESIGN.md has the reasons.
type timing struct {
	heartbeat, election, lease time.Duration // raft's
	commit                     time.Duration // raft's fallback to tell followers a commit
	rpc                        time.Duration // one raft RPC, one dial
	reply                      time.Duration // the lead's answer to a forwarded frame
	tick                       time.Duration // idle entry
	kin                        time.Duration // how often silent members are asked for their epoch
	stable                     time.Duration // non-voter healthy before promotion
	replace                    time.Duration // voter absent before another takes its place
	promote                    time.Duration // how often the lead looks
	enqueue                    time.Duration // raft accepts an entry, or it is refused
	backoff, maxBackoff        time.Duration // between attempts of a proposal
	handshake                  time.Duration // first bytes of a connection
	drain                      time.Duration // Close waits so long for raft's futures
	stall, hang                time.Duration // a write under way: the lead is handed over, the member fails
	slow                       time.Duration // the leader's disk is much slower than a voter's: it is handed over
	slots                      int           // entries in flight
	gather                     int           // commands that do not wait for the entry in flight
	rest                       time.Duration // between an entry and the next one of reports only
	maxAppend                  int           // entries a raft RPC
	snapshotEntries            uint64
	snapshotBytes              int64
	trailing                   uint64
	snapshotEvery              time.Duration
	compare                    time.Duration // between two comparisons of a voter's state
}

// calls is the part that relay needs.
func (t timing) calls() relay.Timing {
	return relay.Timing{
		RPC: t.rpc, Reply: t.reply, Confirm: t.lease, Backoff: t.backoff, MaxBackoff: t.maxBackoff,
		Slots: t.slots, Gather: t.gather, EntryBytes: 1 << 20, Rest: t.rest,
	}
}

func (p Profile) timing() timing {
	t := timing{
		heartbeat: 400 * time.Millisecond, election: 400 * time.Millisecond, lease: 400 * time.Millisecond,
		commit: 50 * time.Millisecond, rpc: 2 * time.Second, reply: 5 * time.Second,
		tick: time.Second, kin: 5 * time.Second, stable: 3 * time.Second, replace: 10 * time.Second, promote: 500 * time.Millisecond,
		enqueue: time.Second, backoff: 5 * time.Millisecond, maxBackoff: 250 * time.Millisecond,
		handshake: 3 * time.Second, drain: 3 * time.Second, stall: 3 * time.Second, hang: 15 * time.Second, slow: 4 * time.Second, slots: 4, gather: 256, rest: 2 * time.Millisecond, maxAppend: 64,
		snapshotEntries: 8192, snapshotBytes: 64 << 20, trailing: 10240, snapshotEvery: 20 * time.Second,
		compare: 5 * time.Second,
	}
	if p == WAN {
		t.heartbeat, t.election, t.lease = 3*time.Second, 3*time.Second, 3*time.Second
		t.commit, t.rpc, t.reply = 200*time.Millisecond, 10*time.Second, 30*time.Second
		t.stable, t.replace, t.enqueue, t.maxBackoff = 30*time.Second, time.Minute, 5*time.Second, time.Second
		t.kin = 30 * time.Second
		t.slow = 10 * time.Second
		t.stall, t.hang, t.rest = 8*time.Second, 30*time.Second, 0 // calls gather for a round trip anyway
		t.handshake, t.drain, t.slots, t.gather, t.maxAppend = 10*time.Second, 8*time.Second, 16, 1, 512
	}
	return t
}
