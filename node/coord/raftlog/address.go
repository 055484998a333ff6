package raftlog

import (
	"strings"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// In raft's configuration and RPCs an address is "site@host:port". raft compares
// addresses as text, in its configuration and when it is asked for a vote: so no
// two members have the same one, whatever they advertise.

// serverAddress is how raft is told of a member that is dialed at addr.
func serverAddress(site, addr string) raft.ServerAddress {
	return raft.ServerAddress(site + "@" + addr)
}

// dialed returns the host:port of a member.
func dialed(a raft.ServerAddress) string {
	if _, addr, found := strings.Cut(string(a), "@"); found {
		return addr
	}
	return string(a) // a configuration from before sites stood in it
}

// configured returns a member as the newest configuration has it; none if it is
// not in it.
func (l *Log) configured(site string) relay.Peer {
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if string(s.ID) == site {
			return relay.Peer{Site: site, Addr: dialed(s.Address)}
		}
	}
	return relay.Peer{}
}

// lead says where calls go now: to this member, to another, or to nobody. The
// address is the one that was dialed back (join.go); what the leader says of
// itself counts for a new member only, which has no configuration yet.
func (l *Log) lead() (to relay.Peer, self bool) {
	a, id := l.raft.LeaderWithID()
	if id == "" {
		return relay.Peer{}, false
	}
	if to = l.configured(string(id)); to.None() {
		to = relay.Peer{Site: string(id), Addr: dialed(a)}
	}
	return to, string(id) == l.cfg.Site
}

// byName has raft's transport ask for members by name: where a member is dialed
// decides stream.Dial.
type byName struct{}

var _ raft.ServerAddressProvider = byName{}

// ServerAddr implements raft.ServerAddressProvider.
func (byName) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	return raft.ServerAddress(id), nil
}

// EncodePeer implements raft.Transport: what others are told is an address.
func (t *transport) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }
