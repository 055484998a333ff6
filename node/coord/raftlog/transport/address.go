package transport

import (
	"strings"

	"github.com/hashicorp/raft"
)

// In raft's configuration and RPCs an address is "site@host:port". raft compares
// addresses as text, in its configuration and when it is asked for a vote: so no
// two members have the same one, whatever they advertise.

// ServerAddress returns how raft is told of a member that is dialed at addr.
func ServerAddress(site, addr string) raft.ServerAddress {
	return raft.ServerAddress(site + "@" + addr)
}

// HostPort returns the host:port of a member.
func HostPort(a raft.ServerAddress) string {
	_, addr, _ := strings.Cut(string(a), "@")
	return addr
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
func (t *Transport) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }
