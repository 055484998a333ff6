package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// address is a host:port of the configuration.
type address struct {
	// host is in lower case, without a final dot; empty for every interface.
	host string
	ip   netip.Addr // zero if host is a name
	port uint16
}

// parseAddress reads HOST:PORT. The error says what is wrong and what to write.
func parseAddress(text string) (a address, err error) {
	if err = checkText(text, "HOST:PORT, such as 10.0.0.2:7701"); err != nil {
		return a, err
	}
	if _, cause := netip.ParseAddr(text); cause == nil && strings.Contains(text, ":") {
		return a, errors.New("is an IPv6 address without a port: write [ADDRESS]:PORT")
	}
	host, port, err := net.SplitHostPort(text)
	switch {
	case text[0] == '[' && strings.HasSuffix(text, "]"):
		return a, errors.New("has no port: write [ADDRESS]:PORT")
	case err != nil && strings.Count(text, ":") > 1:
		return a, errors.New("has more than one colon: write [ADDRESS]:PORT for IPv6, else HOST:PORT")
	case err != nil || port == "":
		return a, errors.New("has no port: write HOST:PORT")
	case text[0] == '[' && !strings.Contains(host, ":"):
		return a, errors.New("has brackets, which are for IPv6 addresses only: write HOST:PORT")
	}
	if a.port, err = parsePort(port); err != nil || host == "" {
		return a, err
	}
	a.host, a.ip, err = parseHost(host)
	return a, err
}

// parsePort reads a number as people write it: several spellings of one port would
// be several addresses.
func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("has port %.20q: write a number of 1 to 65535", text)
	}
	return uint16(n), nil
}

// parseHost reads a host name or an IP address, without brackets.
func parseHost(text string) (host string, ip netip.Addr, err error) {
	if ip, err = netip.ParseAddr(text); err == nil {
		ip = ip.Unmap()
		switch {
		case ip.Zone() != "":
			return "", ip, errors.New("has a zone, which means something on one host only: write an address without")
		case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return "", ip, errors.New("is an address of many hosts: write one host's own")
		}
		return ip.String(), ip, nil
	}
	host = strings.ToLower(strings.TrimSuffix(text, "."))
	labels := strings.Split(host, ".")
	err = nil
	switch {
	case len(host) > 253 || slices.ContainsFunc(labels, func(l string) bool { return !isLabel(l) }):
		err = errors.New("has no host name: write letters, digits, '-' and '.', or an IP address")
	case isNumber(labels[len(labels)-1]):
		err = errors.New("is neither a name nor an IPv4 address, which is four numbers of 0 to 255: correct it")
	}
	return host, netip.Addr{}, err
}

// isLabel reports whether l may stand between the dots of a host name. Names of
// containers have underscores.
func isLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(l, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// isNumber reports whether resolvers take a name that ends so for an IPv4 address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return !strings.ContainsFunc(hex, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
	}
	return !strings.ContainsFunc(label, func(r rune) bool { return r < '0' || r > '9' })
}

// checkText refuses what is no address of any form; form says what to write.
func checkText(text, form string) error {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case text == "":
		return errors.New("is empty: write " + form)
	case len(text) > command.MaxAddress:
		return fmt.Errorf("is longer than %d bytes: write %s", command.MaxAddress, form)
	case strings.ContainsFunc(text, func(r rune) bool { return r > '~' }):
		return errors.New("is not ASCII: write the name in its xn-- form, or an IP address")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }):
		return errors.New("has white space or control characters in it: write " + form)
	case strings.Contains(text, ","):
		return errors.New("has a comma in it: write " + form)
	case isURL:
		return fmt.Errorf("is a URL: write %s, without %s://", form, scheme)
	case strings.ContainsAny(text, "/@"):
		return errors.New("has more than a host in it: write " + form)
	}
	return nil
}

// everywhere reports whether a stands for every interface.
func (a address) everywhere() bool { return a.host == "" || a.ip.IsUnspecified() }

func (a address) loopback() bool { return a.host == "localhost" || a.ip.IsLoopback() }

// equals reports whether a and b are one address as far as their texts tell: all names
// of the loopback are the same, and port 0 is no port yet.
func (a address) equals(b address) bool {
	if a.port != b.port || a.port == 0 {
		return false
	}
	return a.host == b.host || a.loopback() && b.loopback() && (a.host == "localhost" || b.host == "localhost")
}

// overlaps reports whether two listeners cannot both have their port.
func (a address) overlaps(b address) bool {
	return a.equals(b) || a.port == b.port && a.port != 0 && (a.everywhere() || b.everywhere())
}
