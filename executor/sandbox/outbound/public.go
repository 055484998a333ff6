package outbound

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// private are the addresses that are nobody's on the Internet, or not one machine's: this site's machines, the cloud's
// metadata, groups. See the registry of special addresses, RFC 6890.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host, which tells a machine's metadata
}

// public reports whether tasks may reach an address: one of IPv4 that is neither private nor this machine's as of now.
func public(a netip.Addr) bool {
	if !a.Is4() || slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return false
	}
	return !own(a)
}

// own reports whether an address is this machine's, one by which all of a network's machines are reached, or one to
// which there is no way. Whatever can be bound is the former (nonlocal says when not). The kernel is asked alone,
// nothing is sent. A list of the machine's addresses would need a family of sockets that services may not have
// (AF_NETLINK), and would be old.
func own(a netip.Addr) bool {
	if bindable(a) {
		return true
	}
	const discard = 9
	c, err := dialUDP(netip.AddrPortFrom(a, discard))
	if err != nil {
		return true
	}
	c.Close()
	return false
}

func bindable(a netip.Addr) bool {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err == nil {
		c.Close()
	}
	return err == nil
}

// nonlocal reports whether this machine lets any address be bound (ip_nonlocal_bind): its own cannot be told then.
func nonlocal() bool {
	return bindable(netip.MustParseAddr("192.0.2.1")) && bindable(netip.MustParseAddr("192.0.2.254"))
}

var errSelf = errors.New("this machine itself")

// dialUDP makes a flow to one other machine: the runtime allows all sockets of UDP to reach a whole network.
func dialUDP(to netip.AddrPort) (*net.UDPConn, error) {
	d := net.Dialer{Control: before(func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 0)
	})}
	c, err := d.Dial("udp4", to.String())
	if err != nil {
		return nil, err
	}
	if sameAddress(c) {
		c.Close()
		return nil, errSelf
	}
	return c.(*net.UDPConn), nil
}

// before has a dialer set options of a socket before it is connected.
func before(set func(fd int) error) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = set(int(fd)) })
		return errors.Join(cerr, err)
	}
}

// sameAddress reports whether both ends of a connection are the same machine.
func sameAddress(c net.Conn) bool {
	from, err1 := netip.ParseAddrPort(c.LocalAddr().String())
	to, err2 := netip.ParseAddrPort(c.RemoteAddr().String())
	return err1 != nil || err2 != nil || from.Addr().Unmap() == to.Addr().Unmap()
}
