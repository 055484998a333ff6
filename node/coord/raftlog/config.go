package raftlog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Errors of Open; each message names the directory and the remedy.
var (
	// ErrExistingData, ErrNoData, ErrLocked, ErrIdentity: see facade's.
	ErrExistingData = facade.ErrExistingData
	ErrNoData       = facade.ErrNoData
	ErrLocked       = facade.ErrLocked
	ErrIdentity     = facade.ErrIdentity
	// ErrEpoch: the federation went on without this member, or this member
	// without the other: they are of different epochs (recover.go).
	ErrEpoch = errors.New("another epoch of the federation")
	// ErrUnfinished: a recovery was interrupted; it can only be gone on with.
	ErrUnfinished = errors.New("a recovery was interrupted")
	// ErrNoLoss: the members that answer need no recovery.
	ErrNoLoss = errors.New("nothing to recover from")
	// ErrConfig: a Config that cannot work.
	ErrConfig = facade.ErrConfig
)

// ErrStalled is in what Log.Err returns when the disk has not answered for too
// long.
var ErrStalled = errors.New("the disk does not answer")

// Profile selects the timing; see facade's.
type Profile = facade.Profile

// The profiles.
const (
	LAN = facade.LAN
	WAN = facade.WAN
)

// Config of a member. A Federation of zero with Join takes that of the federation
// joined.
type Config struct {
	facade.Config

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

	// timing replaces the profile's timing in tests.
	timing *timing
	// lookup replaces the names, and disk wraps the store, in tests.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	disk   func(store.Disk) store.Disk
	// claims replaces the address that this member says it wants, in tests; "": it does not.
	claims func() string
}

// Validate reports the first reason why the configuration cannot work.
func (c *Config) Validate() error {
	if err := c.Config.Validate(c.Bootstrap, len(c.Join) > 0); err != nil {
		return err
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
	reply                      time.Duration // the leader's answer to a forwarded frame
	tick                       time.Duration // idle entry
	epochCheck                 time.Duration // how often silent members are asked for their epoch
	stable                     time.Duration // non-voter healthy before promotion
	replace                    time.Duration // voter absent before another takes its place
	promote                    time.Duration // how often the leader looks
	enqueue                    time.Duration // raft accepts an entry, or it is refused
	backoff, maxBackoff        time.Duration // between attempts of a proposal
	handshake                  time.Duration // first bytes of a connection
	drain                      time.Duration // Close waits so long for raft's futures
	unheard                    time.Duration // and so long if no voter took the leadership over
	stall, hang                time.Duration // a write under way: the leadership is handed over, the member fails
	slow                       time.Duration // the leader's disk is much slower than a voter's: it is handed over
	turn                       time.Duration // a leader leads so long, and hands over then
	trips                      time.Duration // how often voters measure the round trips between them
	far                        time.Duration // another voter is much nearer to a majority: it is handed over
	slots                      int           // entries in flight
	gather                     int           // commands that do not wait for the entry in flight
	rest                       time.Duration // between an entry and the next one of reports only
	pace                       time.Duration // between two entries in flight, of a member's and the leader's
	bundles                    int           // under way from a member to the leader
	maxAppend                  int           // entries a raft RPC
	snapshotEntries            uint64
	snapshotBytes              int64
	trailing                   uint64
	snapshotEvery              time.Duration
	compare                    time.Duration // between two comparisons of a voter's state

	// spread is within how long behind the heartbeat timeout a follower finds that its leader is silent; 0 = when
	// raft's own timer looks, up to two timeouts behind it. See silence.go.
	spread time.Duration
}

// quiet is for how long a member that does not vote may hear nothing of its leader: more than an idle entry takes to
// come.
func (t timing) quiet() time.Duration { return max(t.heartbeat, 2*t.tick) }

// patience is how long such a member waits for its leader: one request that is late or lost is no loss of it.
func (t timing) patience() time.Duration { return 2 * t.quiet() }

func (t timing) quietness() transport.Quiet {
	return transport.Quiet{For: t.quiet(), Silence: t.patience()}
}

// calls returns the part that relay needs.
func (t timing) calls() relay.Timing {
	return relay.Timing{
		RPC: t.rpc, Reply: t.reply, Confirm: t.lease, Backoff: t.backoff, MaxBackoff: t.maxBackoff,
		Slots: t.slots, Gather: t.gather, EntryBytes: 1 << 20, Rest: t.rest, Bundles: t.bundles,
		Pace: t.pace, Quota: relay.DefaultQuota(),
	}
}

// timingOf returns a profile's timing.
func timingOf(p Profile) timing {
	t := timing{
		heartbeat: 400 * time.Millisecond, election: 400 * time.Millisecond, lease: 400 * time.Millisecond,
		commit: 50 * time.Millisecond, rpc: 2 * time.Second, reply: 5 * time.Second,
		tick: time.Second, epochCheck: 5 * time.Second, stable: 3 * time.Second, replace: 10 * time.Second,
		promote: 500 * time.Millisecond,
		enqueue: time.Second, backoff: 5 * time.Millisecond, maxBackoff: 250 * time.Millisecond,
		handshake: 3 * time.Second, drain: 3 * time.Second, unheard: 100 * time.Millisecond,
		stall: 3 * time.Second, hang: 15 * time.Second,
		trips: 5 * time.Second, far: 30 * time.Second,
		slow: 4 * time.Second, turn: time.Hour, slots: 4, gather: 256, rest: 2 * time.Millisecond,
		bundles: 4, maxAppend: 64,
		snapshotEntries: 8192, snapshotBytes: 64 << 20, trailing: 10240, snapshotEvery: 20 * time.Second,
		compare: 5 * time.Second,
	}
	if p == WAN {
		t.heartbeat, t.election, t.lease = 1500*time.Millisecond, 1500*time.Millisecond, 1500*time.Millisecond
		t.spread = 500 * time.Millisecond // some round trips
		t.commit, t.rpc, t.reply = 200*time.Millisecond, 10*time.Second, 30*time.Second
		t.stable, t.replace, t.enqueue, t.maxBackoff = 30*time.Second, time.Minute, 5*time.Second, time.Second
		t.epochCheck = 30 * time.Second
		t.slow = 10 * time.Second
		t.trips, t.far = 10*time.Second, 2*time.Minute
		// So many for round trips of 200 ms: where fewer are under way, calls wait for one of them to come back.
		t.pace, t.slots, t.bundles = 3*time.Millisecond, 64, 64
		t.stall, t.hang = 8*time.Second, 30*time.Second
		t.unheard = time.Second // some round trips
		t.handshake, t.drain, t.maxAppend = 10*time.Second, 8*time.Second, 512
	}
	return t
}
