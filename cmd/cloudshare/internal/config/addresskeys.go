package config

import (
	"errors"
	"net"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// checkAddresses goes through all keys with addresses in them. What they mean to
// others shows only at run time: see join.go, raftlog's dialBack and api/contact.
func (c Config) checkAddresses() error {
	for _, check := range []func() error{
		c.checkListeners, c.checkPProf, c.checkJoin, c.checkDeny, c.checkGossipJoin, c.checkNames, c.checkHTTPTLS,
		c.checkAdvertise,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// listener is one of the broker's own ports.
type listener struct{ key, text string }

func (c Config) listeners() []listener {
	list := []listener{{"http", c.HTTP}, {"peer", c.Peer}, {"gossip", c.Gossip}}
	for _, l := range []listener{{"pprof", c.PProf}, {"kube.watchdog.listen", c.Kube.Watchdog.Listen}} {
		if l.text != "" {
			list = append(list, l)
		}
	}
	return list
}

// checkListeners keeps plain HTTP off the network unless told otherwise, and the ports apart. The peer port always
// speaks TLS, and gossip is sealed with the federation's key.
func (c Config) checkListeners() error {
	all := c.listeners()
	for i, l := range all {
		a, err := parseAddress(l.text)
		switch {
		case err != nil:
			return cli.Usage("%s %.100q: %w", l.key, l.text, err)
		case l.key == "pprof":
		case !a.loopback() && !c.Insecure && l.key == "http" && !c.securedHTTP():
			return cli.Usage("%s %s is not on loopback, and is plain HTTP, which anybody between can read: name a certificate (http_tls_cert, http_tls_key), have the broker make one (--http-tls-self-made), use 127.0.0.1, or --insecure behind a proxy or on a network you trust", l.key, l.text)
		case !a.loopback() && !c.Insecure && l.key == "kube.watchdog.listen":
			return cli.Usage("%s %s is not on loopback, and is plain HTTP, which anybody between can read: use 127.0.0.1, or --insecure on a network you trust", l.key, l.text)
		case a.everywhere() && c.Advertise == "" && (l.key == "peer" || l.key == "gossip"):
			return cli.Usage("%s %q: listens everywhere, and other brokers cannot dial that: name this host with advertise, or listen at one of its addresses", l.key, l.text)
		}
		for _, other := range all[:i] {
			if b, err := parseAddress(other.text); err == nil && a.overlaps(b) {
				return cli.Usage("%s %s and %s %s are one address: give each a port of its own", other.key, other.text, l.key, l.text)
			}
		}
	}
	return nil
}

// checkPProf refuses an address that others could reach: profiles show what is
// in memory.
func (c Config) checkPProf() error {
	if c.PProf == "" {
		return nil
	}
	if a, err := parseAddress(c.PProf); err != nil || !a.loopback() {
		return cli.Usage("pprof %s is not on loopback, and profiles show what is in memory: use 127.0.0.1:PORT and a tunnel", c.PProf)
	}
	return nil
}

// checkGossipJoin lets a broker's own gossip address be in the list, so that all
// brokers can have the same one.
func (c Config) checkGossipJoin() error {
	if err := CheckDialed("gossip_join", c.GossipJoin); err != nil {
		return err
	}
	for _, text := range c.GossipJoin {
		if key := c.ownKey(text); key != "" && key != "gossip" {
			return cli.Usage("gossip_join %s: that is this broker's own %s, and no gossip port: give another site's gossip address", text, key)
		}
	}
	return nil
}

// ownKey names the key by which an address is this broker's own, "" if it is not,
// as far as the texts tell.
func (c Config) ownKey(text string) string {
	a, err := parseAddress(text)
	if err != nil {
		return ""
	}
	for _, l := range c.listeners() {
		own, err := parseAddress(l.text)
		told, cause := parseAddress(c.Advertised(l.text))
		if err == nil && (a.equals(own) || own.everywhere() && own.port == a.port && a.loopback()) || cause == nil &&
			a.equals(told) {
			return l.key
		}
	}
	return ""
}

// CheckDialed checks addresses that this broker dials.
func CheckDialed(key string, list []string) error {
	for i, text := range list {
		a, err := parseAddress(text)
		switch {
		case err != nil:
			return cli.Usage("%s %.100q: %w", key, text, err)
		case a.everywhere():
			return cli.Usage("%s %q: is no host's own address: write HOST:PORT of one", key, text)
		case a.port == 0:
			return cli.Usage("%s %q: nobody listens at port 0: write a number of 1 to 65535", key, text)
		}
		for _, other := range list[:i] {
			if b, err := parseAddress(other); err == nil && a.equals(b) {
				return cli.Usage("%s %q: is given twice, also as %q: leave one out", key, text, other)
			}
		}
	}
	return nil
}

// checkNames checks the names that clients may ask by.
func (c Config) checkNames() error {
	for _, name := range c.HTTPNames {
		if err := checkHost(name); err != nil {
			return cli.Usage("http_names %.100q: %w: it must be a host name without scheme and port, such as broker.lan", name, err)
		}
	}
	return nil
}

// checkAdvertise checks the host that others are told: its ports are the listeners'.
func (c Config) checkAdvertise() error {
	if c.Advertise == "" {
		return nil
	}
	if err := checkHost(c.Advertise); err != nil {
		return cli.Usage("advertise %.100q: %w: it must be a host name or an address that other brokers reach, without scheme and port, such as broker.lan", c.Advertise, err)
	}
	if a, err := parseAddress(net.JoinHostPort(c.Advertise, "1")); err != nil || a.everywhere() {
		return cli.Usage("advertise %q: is no host's own address: write one that other brokers reach", c.Advertise)
	}
	for _, l := range c.listeners()[:3] {
		if a, err := parseAddress(l.text); err == nil && a.port == 0 {
			return cli.Usage("advertise %s: others need to know the ports, too: give http, peer and gossip fixed ones instead of %s", c.Advertise, l.text)
		}
	}
	return nil
}

var errHostOnly = errors.New("has a port or brackets: write the host alone")

// checkHost checks a host without a port.
func checkHost(text string) error {
	if err := checkText(text, "the host alone"); err != nil {
		return err
	}
	_, _, err := parseHost(text)
	if _, _, cause := net.SplitHostPort(text); err != nil && (cause == nil || strings.ContainsAny(text, "[]")) {
		return errHostOnly
	}
	return err
}
