package outward

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// CheckHost returns nil if the host of a URL may be asked at its port, else an error that wraps Refused and says why.
// Of a host that is an address it checks that, too; of a name the addresses are checked where it is connected to.
func (r *Rules) CheckHost(u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	switch {
	case len(r.Hosts) == 0:
		return r.refuse("no host is allowed: the site's operator allows some by %s", r.HostsKey)
	case !r.allowed(host, port(u)):
		return r.refuse("host %.100q is not allowed: the site's operator allows some by %s", u.Host, r.HostsKey)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return r.checkAddr(a)
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
func (r *Rules) allowed(host, port string) bool {
	for _, known := range r.Hosts {
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

// Control refuses addresses that hosts have and that are not the public's, for net.Dialer. It is asked for the very
// address that is about to be connected to, so what a name meant before, or means next, plays no part.
func (r *Rules) Control(_, address string, _ syscall.RawConn) error {
	if r.Private {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return r.refuse("its address %.100q is none", address)
	}
	return r.checkAddr(to.Addr())
}

func (r *Rules) checkAddr(a netip.Addr) error {
	if !r.Private && !Public(a) {
		return r.refuse("its host has the address %s, which is not the public's: %s allows that", a, r.PrivateKey)
	}
	return nil
}

func (r *Rules) refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{r.Refused}, args...)...)
}
