package outbound

import (
	"net"
	"net/netip"
	"slices"
)

// private are the addresses that are nobody's on the Internet, or not one machine's: this site's machines, the cloud's
// metadata, groups. See the registry of special addresses, RFC 6890.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
}

// public reports whether tasks may reach an address: one of IPv4 that is neither private nor this machine's as of now.
func public(a netip.Addr) bool {
	if !a.Is4() || slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return false
	}
	return !own(a)
}

// own reports whether an address is this machine's, or there is no way to it: the kernel sends from an address of its
// own to itself by the same one. It is asked for the way only, nothing is sent. A list of the machine's addresses would
// need a family of sockets that services may not have (AF_NETLINK), and would be old.
func own(a netip.Addr) bool {
	const discard = 9
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, discard)))
	if err != nil {
		return true
	}
	defer c.Close()
	return sameAddress(c)
}

// sameAddress reports whether both ends of a connection are the same machine.
func sameAddress(c net.Conn) bool {
	from, err1 := netip.ParseAddrPort(c.LocalAddr().String())
	to, err2 := netip.ParseAddrPort(c.RemoteAddr().String())
	return err1 != nil || err2 != nil || from.Addr().Unmap() == to.Addr().Unmap()
}
