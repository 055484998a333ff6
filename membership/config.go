package membership

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"
)

// Errors of the package; each message names what failed and the remedy.
var (
	// ErrConfig: a Config or metadata that cannot work.
	ErrConfig = errors.New("invalid gossip configuration")
	// ErrListen: the gossip port could not be bound, over TCP or UDP.
	ErrListen = errors.New("cannot listen for gossip")
	// ErrClosed: the Gossip was closed or has left.
	ErrClosed = errors.New("gossip is closed")
	// ErrMeta: metadata of a member that is not understood.
	ErrMeta = errors.New("malformed metadata")
	// ErrRefused: a member that is not taken into the table.
	ErrRefused = errors.New("member is ignored")
)

const (
	// MaxMembers bounds the sites remembered, those that are gone included.
	MaxMembers = 1024
	// KeyBytes is the length of Config.Key.
	KeyBytes = 32
)

// Profile selects the timing.
type Profile uint8

// The profiles; DESIGN.md has the reasons for their figures.
const (
	LAN Profile = iota // members a few milliseconds apart: a death is seen in about 2 s
	WAN                // members up to some hundred milliseconds apart: in about 5 s
)

// Meta is what this site tells the others about itself: where its broker
// listens, host:port, each at most MaxAddress bytes; empty = not known.
type Meta struct {
	HTTP, Peer string
}

// Config of a Gossip. Site, Federation and Listen are required.
type Config struct {
	Site        string   // this member's name; a DNS label in lower case
	Federation  [16]byte // members of another federation are refused
	Incarnation uint64   // the broker's registration; 0 = not yet registered
	Meta        Meta

	// Listen is bound for TCP and UDP, host:port; port 0 picks one. Advertise
	// is what others send to; empty means the bound address. A name in it is looked
	// up until it is found, then never again.
	Listen, Advertise string

	// Misdialed returns what to answer to a stream that begins so, since it means
	// another port of the broker; nil: it does not. May be nil.
	Misdialed func(first [4]byte) []byte

	// Key encrypts and authenticates gossip: KeyBytes bytes, the same at every
	// member, until SetKey replaces it. Empty: a key made of the federation's id, which
	// keeps out junk and other federations, but nobody who knows that id.
	// Generation is Key's, 0 if that is empty: SetKey takes later ones.
	Key        []byte
	Generation uint64

	// Known reports whether a site may take part. What is claimed of another is
	// ignored. It must not block, nor call the Gossip. nil: every site may.
	Known func(site string) bool

	Profile Profile

	// Join returns the gossip addresses, host:port, of any members to join
	// through. It is asked at every rejoin, from one goroutine, and must not
	// block. May be nil: others join through this member.
	Join func() []string

	Logger zerolog.Logger

	// timing replaces the profile's timing, and wrap the network, in tests.
	timing *timing
	wrap   func(memberlist.NodeAwareTransport) memberlist.NodeAwareTransport
	// lookup replaces the resolver, in tests.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Validate reports the first reason why the configuration cannot work.
func (c *Config) Validate() error {
	switch {
	case !validSite(c.Site):
		return fmt.Errorf("%w: site name %.80q is not a DNS label in lower case", ErrConfig, c.Site)
	case c.Federation == [16]byte{}:
		return fmt.Errorf("%w: no federation id", ErrConfig)
	case len(c.Key) != 0 && len(c.Key) != KeyBytes:
		return fmt.Errorf("%w: key has %d bytes, not %d", ErrConfig, len(c.Key), KeyBytes)
	case c.Profile > WAN:
		return fmt.Errorf("%w: profile %d does not exist", ErrConfig, c.Profile)
	}
	host, _, err := splitAddress(c.Listen, 0)
	if err != nil {
		return fmt.Errorf("%w: listen address: %w", ErrConfig, err)
	}
	if c.Advertise != "" {
		if host, _, err = splitAddress(c.Advertise, 1); err != nil {
			return fmt.Errorf("%w: advertise address: %w", ErrConfig, err)
		}
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return fmt.Errorf("%w: listening on every interface at %q needs an advertise address that others can reach", ErrConfig, c.Listen)
	}
	return c.Meta.validate()
}

// splitAddress reads host:port with a numeric port not below least.
func splitAddress(s string, least uint64) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("%.300q is not HOST:PORT", s)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < least {
		return "", 0, fmt.Errorf("%.300q has no port in %d…65535", s, least)
	}
	return host, uint16(n), nil
}

// validSite is fsm's rule for site names, which this package must not import.
func validSite(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// label stands before every packet and stream, and is authenticated with it.
func (c *Config) label() string { return "cloudshare/" + hex.EncodeToString(c.Federation[:]) }

// secret returns the first key: gossip is always framed and authenticated, so that
// no byte from outside the federation reaches a decoder.
func (c *Config) secret() []byte {
	if len(c.Key) > 0 {
		return c.Key
	}
	sum := sha256.Sum256([]byte("cloudshare gossip " + c.label()))
	return sum[:]
}

// timing is everything that a profile decides; DESIGN.md has the reasons.
type timing struct {
	probe, ack    time.Duration // one probe a period; first answer within ack
	suspicion     int           // periods between a failed probe and dead; 2 = nobody need confirm
	patience      int           // a period stretches so far while we ourselves are slow
	gossip        time.Duration // between packets with news
	syncing       time.Duration // between full exchanges with a random member
	deadTime      time.Duration // memberlist forgets a dead member after this
	reclaim       time.Duration // then a dead member's name may come from another address
	stream        time.Duration // one TCP exchange
	hello         time.Duration // first bytes of a TCP stream
	rejoin        time.Duration // mean time between rejoins
	spread        time.Duration // news of ours must have been sent within this
	rivalry       time.Duration // a claim of a taken name is shown so long
	logEvery      time.Duration // one warning of a kind
	keyDelay      time.Duration // until a new key is sent with; then until the former is forgotten
	retransmit, k int           // sends of one piece of news are retransmit·log10(n+1); k at once
}

func (p Profile) timing() timing {
	if p == WAN {
		return timing{
			probe: 1500 * time.Millisecond, ack: 750 * time.Millisecond, suspicion: 2, patience: 4,
			gossip: 300 * time.Millisecond, syncing: 30 * time.Second, deadTime: time.Minute,
			reclaim: 10 * time.Second, stream: 10 * time.Second, hello: 5 * time.Second,
			rejoin: 10 * time.Second, spread: 10 * time.Second, rivalry: 90 * time.Second,
			logEvery: 30 * time.Second, keyDelay: time.Minute, retransmit: 4, k: 4,
		}
	}
	return timing{
		probe: 600 * time.Millisecond, ack: 300 * time.Millisecond, suspicion: 2, patience: 4,
		gossip: 100 * time.Millisecond, syncing: 10 * time.Second, deadTime: 30 * time.Second,
		reclaim: time.Second, stream: 3 * time.Second, hello: time.Second,
		rejoin: 3 * time.Second, spread: 2 * time.Second, rivalry: 30 * time.Second,
		logEvery: 30 * time.Second, keyDelay: 10 * time.Second, retransmit: 4, k: 3,
	}
}
