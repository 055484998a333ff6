package imports

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// permit refuses what may not be asked for, with the reason.
func (m *Imports) permit(text string) error {
	if isObject(text) {
		_, err := m.checkObject(text)
		return err
	}
	_, err := m.check(text)
	return err
}

// check returns the URL of a text if it may be asked, else ErrRefused with the reason.
func (m *Imports) check(text string) (*url.URL, error) {
	if len(text) > MaxURL {
		return nil, refuse("it has more than %d bytes", MaxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse("it is no URL")
	}
	return u, m.checkURL(u)
}

func (m *Imports) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "https":
		return refuse("its scheme is %.20q: only https and s3 are fetched", u.Scheme)
	case u.User != nil:
		return refuse("it names a user: credentials stay out of URLs, fetch it yourself and upload it")
	case len(m.cfg.Hosts) == 0:
		return refuse("no host is allowed: the site's operator allows some by data.fetch_from")
	case !m.allowed(strings.ToLower(u.Hostname()), port(u)):
		return refuse("host %.100q is not allowed: the site's operator allows some by data.fetch_from", u.Host)
	}
	return nil
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}

// allowed reports whether a host, in small letters, is in the configuration.
func (m *Imports) allowed(host, port string) bool {
	for _, known := range m.cfg.Hosts {
		name, at, err := net.SplitHostPort(known)
		if err != nil {
			name, at = strings.Trim(known, "[]"), "443"
		}
		name = strings.ToLower(name)
		below, wild := strings.CutPrefix(name, "*")
		matches := name == host || wild && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below) && host != below
		if matches && at == port {
			return true
		}
	}
	return false
}

// control refuses addresses that hosts have and that are not the public's. It is asked for the very address that is
// about to be connected to, so what a name meant before, or means next, plays no part.
func (m *Imports) control(_, address string, _ syscall.RawConn) error {
	if m.cfg.Private {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("its address %.100q is none", address)
	}
	if !public(to.Addr()) {
		return refuse("its host has the address %s, which is not the public's: data.fetch_private allows that", to.Addr())
	}
	return nil
}

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

// public reports whether an address is the public's. Those of IPv6 that stand for one of IPv4 (mapped, NAT64, 6to4,
// Teredo) are not: they are another text for an address that may not be.
func public(a netip.Addr) bool {
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

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}
