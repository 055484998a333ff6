package rates

import "net/netip"

// Sender is whom a remote address counts for: an address of IPv4, or a whole network (/64) of IPv6, as one host has as
// many of these as it likes.
type Sender [16]byte

// SenderOf reads a remote address, HOST:PORT; known is false for one that is none, as on a Unix socket.
func SenderOf(remote string) (from Sender, known bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return from, false
	}
	ip := at.Addr().Unmap()
	from = ip.As16()
	if ip.Is6() {
		clear(from[8:])
	}
	return from, true
}
