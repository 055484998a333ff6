package box

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// NetworkVerb is the argument with which the program is KeepNetwork.
const NetworkVerb = "box-network"

// networkFile of Box is what KeepNetwork tells: networkReady, or why not.
const networkFile = "network"

const networkReady = "ready\n"

// KeepNetwork is the life of the first process of a container that has no task, only a
// network of its own, which an attempt's container joins: so the rules of what is
// reached are made by somebody who may, and whom the task does not reach. The argument
// lists addresses, separated by commas, that are not reached, after a slash those of
// name servers, which are asked for names all the same. It returns only on errors.
func KeepNetwork(args []string) int {
	refused, servers, _ := strings.Cut(args[0], "/")
	said := networkReady
	err := limitNetwork(addresses(refused), addresses(servers))
	if err != nil {
		said = "limit its network: " + err.Error() + "\n"
	}
	if werr := os.WriteFile(filepath.Join(Box, networkFile), []byte(said), 0); werr != nil || err != nil {
		fmt.Fprintln(os.Stderr, "box: ", said, werr)
		return 1
	}
	for {
		_ = unix.Pause()
	}
}

// NetworkArgument is KeepNetwork's.
func NetworkArgument(refused, servers []netip.Addr) string {
	return joined(refused) + "/" + joined(servers)
}

func joined(list []netip.Addr) string {
	texts := make([]string, 0, len(list))
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ",")
}

func addresses(text string) (list []netip.Addr) {
	for part := range strings.SplitSeq(text, ",") {
		if a, err := netip.ParseAddr(part); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// NetworkPath is the file that KeepNetwork tells in, which must be there before it is
// started, and its place in the container.
func NetworkPath(dir string) (outside, inside string) {
	return filepath.Join(dir, networkFile), Box + "/" + networkFile
}

// MakeNetworkFile makes it.
func MakeNetworkFile(dir string) error {
	path, _ := NetworkPath(dir)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o666)
}

// HearNetwork reads what KeepNetwork has told; neither: nothing yet.
func HearNetwork(dir string) (ready bool, err error) {
	path, _ := NetworkPath(dir)
	b, err := readAtMost(path, maxTold)
	switch text := string(b); {
	case err != nil:
		return false, err
	case text == networkReady:
		return true, nil
	case strings.HasSuffix(text, "\n"):
		return false, fmt.Errorf("%s", strings.TrimSpace(text))
	}
	return false, nil
}

// private are the addresses that are nobody's on the Internet: this site's machines, the
// engine's networks, the cloud's metadata.
var private = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.168.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
}

// Priorities of rules: behind the table of local addresses (0), before the main one.
const (
	askServers = 90
	refuseAll  = 100
)

// limitNetwork makes the rules of this network namespace: rules, not routes, since a gateway with a private address
// must still be sent through, though not to.
func limitNetwork(refused, servers []netip.Addr) error {
	nl, err := newRuleMaker()
	if err != nil {
		return err
	}
	defer nl.close()
	for _, a := range append(servers, NameServers()...) {
		for _, proto := range []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			if a.Is4() && err == nil {
				err = nl.add(rule{to: netip.PrefixFrom(a, 32), priority: askServers, proto: proto, port: 53})
			}
		}
	}
	for _, p := range refusedPrefixes(refused) {
		if err == nil {
			err = nl.add(rule{to: p, priority: refuseAll, refuse: true})
		}
	}
	if err == nil { // and all of IPv6
		err = nl.add(rule{to: netip.PrefixFrom(netip.IPv6Unspecified(), 0), priority: refuseAll, refuse: true})
		if err == unix.EAFNOSUPPORT || err == unix.EOPNOTSUPP { //nolint:errorlint // never wrapped; there is no IPv6
			err = nil
		}
	}
	return err
}

// refusedPrefixes are the private ones, single addresses, and the network that this one is attached to.
func refusedPrefixes(single []netip.Addr) (list []netip.Prefix) {
	for _, text := range private {
		list = append(list, netip.MustParsePrefix(text))
	}
	for _, a := range single {
		if a.Is4() {
			list = append(list, netip.PrefixFrom(a, 32))
		}
	}
	for _, p := range attached() {
		if p.Addr().Is4() {
			list = append(list, p.Masked())
		}
	}
	return list
}

// attached are the addresses of this network's interfaces, each with its network.
func attached() (list []netip.Prefix) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// OwnAddresses are those of this network's interfaces.
func OwnAddresses() (list []netip.Addr) {
	for _, p := range attached() {
		list = append(list, p.Addr())
	}
	return list
}

// NameServers are the addresses that this process asks for names, but for loopback's.
func NameServers() []netip.Addr {
	file, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	return nameServers(string(file))
}

// nameServers returns the addresses that a resolv.conf names, but for loopback's.
func nameServers(file string) (list []netip.Addr) {
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && !a.IsLoopback() {
			list = append(list, a)
		}
	}
	return list
}
