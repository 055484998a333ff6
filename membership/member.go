package membership

import (
	"fmt"
	"net/netip"
	"time"
)

// State is how a member looks from here.
type State uint8

// The states of a member.
const (
	Alive   State = iota // answers probes
	Suspect              // our probe failed: direct, through others, and over TCP
	Dead                 // did not refute the suspicion in time; not proof of anything
	Left                 // said that it leaves
)

// String gives the state's name in lower case.
func (s State) String() string {
	switch s {
	case Alive:
		return "alive"
	case Suspect:
		return "suspect"
	case Dead:
		return "dead"
	case Left:
		return "left"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Member is one site as gossip shows it: hints, none of them proven.
type Member struct {
	Site        string
	Incarnation uint64 // 0 = the broker has not registered yet
	Meta
	Addr  netip.AddrPort // gossip address
	State State
	Since time.Time // when State changed, by this broker's clock

	// Rival is the gossip address of another node that claims this site's
	// name now; zero = none. Of the two, the member shows the one with the
	// greater incarnation.
	Rival netip.AddrPort
}

// Event says that a member changed. It carries the whole member: what was not
// read in time is replaced by the member's newer state.
type Event struct {
	Member Member
}
