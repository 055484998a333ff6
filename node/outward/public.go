package outward

import "net/netip"

// notPublic are networks that only a machine, a site or a provider reaches, that are nobody's, or by which others are
// reached (RFC 6890, 6598, 5737, 2544, 3849, 6052, 3056, 4380, 8215).
var notPublic = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")

// global is what of IPv6 is the public's, but for the networks in notGlobal.
var (
	global    = netip.MustParsePrefix("2000::/3")
	notGlobal = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// Public reports whether an address is the public's. Those of IPv6 that stand for one of IPv4 (mapped, NAT64, 6to4,
// Teredo) are not: they are another text for an address that may not be.
func Public(a netip.Addr) bool {
	if a.Is4() {
		return !within(a, notPublic)
	}
	return a.Zone() == "" && global.Contains(a) && !within(a, notGlobal)
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
