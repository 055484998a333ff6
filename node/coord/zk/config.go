package zk

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// Errors of Open and of what a Log fails of; each message names the path.
var (
	// ErrUnreachable: no server of the ensemble answered in time.
	ErrUnreachable = errors.New("no ZooKeeper server answers")
	// ErrNoTree: there is no federation below the chroot.
	ErrNoTree = errors.New("no federation there")
	// ErrTree, ErrVersion, ErrDamaged: see tree's.
	ErrTree    = tree.ErrTree
	ErrVersion = tree.ErrVersion
	ErrDamaged = tree.ErrDamaged
	// ErrDenied: an ACL denies it, or one lets anybody write.
	ErrDenied = errors.New("access rights")
	// ErrNoData, ErrIdentity: see facade's.
	ErrNoData   = facade.ErrNoData
	ErrIdentity = facade.ErrIdentity
	// ErrConfig: a Config that cannot work.
	ErrConfig = facade.ErrConfig
)

// Profile selects the timing; see facade's.
type Profile = facade.Profile

// The profiles.
const (
	LAN = facade.LAN
	WAN = facade.WAN
)

// Place says where a federation's tree is and how to get at it.
type Place struct {
	Servers []string // host:port of the ensemble's servers
	Chroot  string   // absolute path of the tree; "" is the root
	// User and Password are the digest credentials that every znode is given to.
	User, Password string
	// Former are those before, "USER:PASSWORD", while they are replaced: what is written is given to both.
	Former string
	TLS    *tls.Config // nil: plain connections
	// Session is how long a silent member keeps its ephemerals, the leader among
	// them; the ensemble bounds it. 0 = 4 s.
	Session time.Duration
}

// ParsePlace splits host:port,…/chroot.
func ParsePlace(text string) (Place, error) {
	servers, chroot, found := strings.Cut(text, "/")
	var p Place
	if found {
		p.Chroot = "/" + chroot
	}
	p.Servers = strings.Split(servers, ",")
	p.Chroot = strings.TrimSuffix(p.Chroot, "/")
	return p, p.validate()
}

// String returns what ParsePlace reads.
func (p Place) String() string { return strings.Join(p.Servers, ",") + p.Chroot }

func (p Place) validate() error {
	for _, s := range p.Servers {
		host, port, err := net.SplitHostPort(s)
		if err != nil || host == "" || port == "" {
			return fmt.Errorf("%w: ZooKeeper server %.80q is not HOST:PORT", ErrConfig, s)
		}
	}
	for _, part := range strings.Split(p.Chroot, "/")[min(1, len(p.Chroot)):] {
		if p.Chroot != "" && (part == "" || part == "." || part == ".." || part == "zookeeper") ||
			strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%w: chroot %.80q is not an absolute path of a znode of ours", ErrConfig, p.Chroot)
		}
	}
	return nil
}

// DefaultSession is the shortest that an ensemble with ZooKeeper's own defaults
// gives.
const DefaultSession = 4 * time.Second

// session returns the timeout asked for.
func (p Place) session() time.Duration {
	if p.Session == 0 {
		return DefaultSession
	}
	return p.Session
}

// Config of a member. Servers, User and Password are required, too. Dir holds this member's
// identity, and no log.
type Config struct {
	facade.Config
	Place
	// MinEpoch: the tree must be of no earlier epoch. A site that comes from another
	// backend has been in the one before.
	MinEpoch uint64

	// Exactly one of Bootstrap and Join on an empty directory, neither on one in
	// use. A member joins through the ensemble, not through another member.
	Bootstrap, Join bool

	timing *timing // replaces the profile's in tests
	dial   dial    // replaces the network to the ensemble in tests
}

// Validate reports the first reason why the configuration cannot work.
func (c *Config) Validate() error {
	if err := c.Config.Validate(c.Bootstrap, c.Join); err != nil {
		return err
	}
	return c.checkAccess()
}

// checkAccess checks what every user of a tree needs.
func (p Place) checkAccess() error {
	switch {
	case len(p.Servers) == 0:
		return fmt.Errorf("%w: no ZooKeeper servers", ErrConfig)
	case p.User == "" || p.Password == "" || strings.Contains(p.User, ":"):
		return fmt.Errorf("%w: no digest credentials: the tree must not be writable for everybody", ErrConfig)
	case p.session() < 100*time.Millisecond || p.session() > 2*time.Minute:
		return fmt.Errorf("%w: session timeout %v is not between 100ms and 2m", ErrConfig, p.session())
	}
	return p.validate()
}

// timing is everything that a profile decides.
type timing struct {
	relay.Timing
	handshake time.Duration // first bytes of a peer connection
	open      time.Duration // the ensemble's next answer, while Open asks
	tick      time.Duration // idle entry
	poll      time.Duration // watches may be lost: everything is looked at again
	drain     time.Duration // Close waits so long for entries in flight
	compare   time.Duration // between two comparisons of a voter's state
	turn      time.Duration // a leader leads so long, and hands over then

	snapshotEntries, trail uint64 // entries between snapshots; entries kept behind one
	snapshotBytes          int64
	// Beyond these the leader orders nothing until a snapshot is written.
	maxEntries uint64
	maxBytes   int64
}

// timingOf returns a profile's timing.
func timingOf(p Profile) timing {
	t := timing{
		Timing: relay.Timing{
			RPC: 2 * time.Second, Reply: 5 * time.Second, Confirm: 2 * time.Second,
			Backoff: 5 * time.Millisecond, MaxBackoff: 250 * time.Millisecond,
			Slots: 8, Gather: 64, EntryBytes: 512 << 10, Bundles: 4, Quota: relay.DefaultQuota(),
		},
		handshake: 3 * time.Second, open: 15 * time.Second, tick: time.Second, poll: time.Second,
		drain:           2 * time.Second,
		snapshotEntries: 4096, trail: 1024, snapshotBytes: 32 << 20, maxEntries: 16384, maxBytes: 128 << 20,
		compare: 5 * time.Second, turn: time.Hour,
	}
	if p == WAN {
		t.RPC, t.Reply, t.Confirm, t.MaxBackoff = 10*time.Second, 30*time.Second, 10*time.Second, time.Second
		t.Bundles = 16
		t.Slots, t.Gather, t.handshake, t.open = 16, 1, 10*time.Second, time.Minute
	}
	return t
}
