package facade

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Profile selects the timing.
type Profile uint8

// The profiles.
const (
	LAN Profile = iota // members a few milliseconds apart
	WAN                // members up to some hundred milliseconds apart
)

// Config of a member on any backend. Site, Node, Dir, Listen and Machine are required.
type Config struct {
	Site       string   // this member's id; a DNS label
	Node       [16]byte // identity of the data directory
	Federation [16]byte // what a founder founds; with a join zero takes the one joined
	Dir        string   // created if absent

	// Listen is the peer address to bind, host:port; port 0 picks one.
	// Advertise is what others dial; empty means the bound address.
	Listen, Advertise string

	// Evidence is the folder in which this member keeps states should it have to stop
	// because its own differs; "" keeps none. Open refuses as long as one is there.
	Evidence string
	// Proofs is the folder in which it keeps what others have signed, if that differs; ""
	// keeps none.
	Proofs string
	// Keep is told what members have signed of their histories and states (compare.Config.Keep); nil: nobody is.
	Keep func(compare.Group, []compare.Statement)

	Profile Profile
	Machine coord.Machine
	Logger  zerolog.Logger
	Hooks   Hooks

	// Net is the network of peers; nil is the real one.
	Net *relay.Network
	// Enroll answers those who are no members yet (relay.KindEnroll); nil: nobody does.
	Enroll func(conn net.Conn, p relay.Preamble)
	// Keys answers members that run this site's jobs (relay.KindKeys); nil: nobody does.
	Keys func(conn net.Conn, p relay.Preamble)
	// Files serves blobs to members that may have them (relay.KindFiles); nil: nobody does.
	Files func(conn net.Conn, p relay.Preamble)
	// Logs gives members what their tasks have written here (relay.KindLogs); nil: nobody does.
	Logs func(conn net.Conn, p relay.Preamble)
	// Progress tells members what their tasks do here before they start (relay.KindProgress); nil: nobody does.
	Progress func(conn net.Conn, p relay.Preamble)
}

// Hooks observe; each may be nil, must not block, and may be called from any
// goroutine.
type Hooks struct {
	Entry   func(commands, bytes int)       // the leader sent an entry
	Store   func(took time.Duration, n int) // n entries are durable
	Forward func(groups int)                // a frame of calls went to the leader
	Lead    func(site string)               // the leader changed; "" = none
	// HandOver: this leader hands over, for one of the reasons of coord.Figures.HandOvers.
	HandOver func(reason string)
}

// Validate reports the first reason why the configuration cannot work. founds and joins
// say what the backend was told to do with an empty directory.
func (c *Config) Validate(founds, joins bool) error {
	switch {
	case !command.ValidSite(c.Site):
		return fmt.Errorf("%w: site name %.80q is not a DNS label", ErrConfig, c.Site)
	case c.Node == [16]byte{}:
		return fmt.Errorf("%w: node id is zero", ErrConfig)
	case c.Dir == "":
		return fmt.Errorf("%w: no data directory", ErrConfig)
	case c.Machine == nil:
		return fmt.Errorf("%w: no state machine", ErrConfig)
	case c.Profile > WAN:
		return fmt.Errorf("%w: profile %d does not exist", ErrConfig, c.Profile)
	case founds && joins:
		return fmt.Errorf("%w: bootstrap and join exclude each other", ErrConfig)
	case founds && c.Federation == [16]byte{}:
		return fmt.Errorf("%w: bootstrap needs a federation id", ErrConfig)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("%w: listen address %.80q: %w", ErrConfig, c.Listen, err)
	}
	return nil
}

// ErrConfig reports a Config that cannot work.
var ErrConfig = errors.New("invalid configuration")
