package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/membership"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// addressForms are what people write where an address is wanted.
var addressForms = []string{
	"", ":", ":7801", "10.0.0.9", "10.0.0.9:", "10.0.0.9:0", "10.0.0.9:1", "10.0.0.9:65535", "10.0.0.9:65536", "10.0.0.9:-1", "10.0.0.9:+1",
	"10.0.0.9:http", "10.0.0.9:07801", "10.0.0.9:0x1e", "10.0.0.9:7801:1", "256.1.1.1:7801", "1.2.3:7801", "127.1:7801", "010.0.0.9:7801", "0x7f.1:7801", "0:7801", "0",
	"0.0.0.0:7801", "[::]:7801", "224.0.0.1:7801", "255.255.255.255:7801", "[ff02::1]:7801",
	"::1", "::1:7801", "[::1]", "[::1]:7801", "[::1]:", "[::1]7801", "[::ffff:127.0.0.1]:7801", "[2001:db8::9]:7801", "[fe80::1%eth0]:7801", "[10.0.0.9]:7801", "[lan]:7801", "[:7801",
	"lan:7801", "LAN:7801", "lan.:7801", "lan..:7801", ".lan:7801", "a..b:7801", "-lan:7801", "lan-:7801", "my_box:7801", "*.lan:7801", "xn--brkr-5qa.lan:7801",
	strings.Repeat("a", 63) + ":7801", strings.Repeat("a", 64) + ":7801", strings.Repeat("a.", 200) + "lan:7801",
	"brökr.lan:7801", "１０.0.0.9:7801", "lan\u202e:7801", "lan\x00:7801", "lan\n:7801", " lan:7801", "lan:7801 ", "lan: 7801", "lan :7801",
	"http://lan:7801", "tcp://10.0.0.9:7801", "lan:7801/", "lan/x:7801", "me@lan:7801", "lan:7801,b:7801",
	"lan", "broker.lan", "broker.lan.", "BROKER.LAN", "10.0.0.9", "256.1.1.1", "2001:db8::9", "[2001:db8::9]", "0.0.0.0", "localhost", "LOCALHOST.",
	"localhost:7801", "LOCALHOST:7801", "localhost.:7801", "127.0.0.9:7801", "127.0.0.9:0",
	"127.0.0.1:7700", "LocalHost:7701", "localhost.:7702", "[::ffff:127.0.0.1]:7701", "[::1]:7701",
}

type addressKey struct {
	key string
	set func(c *Config, text string)
}

// addressKeys are the keys with addresses in them.
var addressKeys = []addressKey{
	{"http", func(c *Config, text string) { c.HTTP = text }},
	{"peer", func(c *Config, text string) { c.Peer = text }},
	{"gossip", func(c *Config, text string) { c.Gossip = text }},
	{"pprof", func(c *Config, text string) { c.PProf = text }},
	{"kube.watchdog.listen", func(c *Config, text string) { c.Kube.Watchdog.Listen = text }},
	{"gossip_join", func(c *Config, text string) { c.GossipJoin = []string{text} }},
	{"zk", func(c *Config, text string) { c.Coordination, c.ZK, c.ZKAuth = ZooKeeper, text, "digest" }},
	{"advertise", func(c *Config, text string) { c.Advertise = text }},
	{"http_names", func(c *Config, text string) { c.HTTPNames = []string{text} }},
}

// judged is one line: what the configuration says of a text.
func judged(c Config, text string) string {
	err := c.Validate()
	if err == nil {
		return fmt.Sprintf("ok %.100q\n", text)
	}
	return err.Error() + "\n"
}

// TestAddresses: every key with an address, and every form of one. What is refused
// is refused in one line with the key, why, and what to write, and exit 2.
func TestAddresses(t *testing.T) {
	var all strings.Builder
	for _, insecure := range []bool{true, false} {
		for _, k := range addressKeys {
			fmt.Fprintf(&all, "\n%s, insecure %v\n", k.key, insecure)
			for _, text := range addressForms {
				c := Default()
				c.Site, c.Insecure, c.ZKInsecure = "a", insecure, insecure && k.key == "zk"
				k.set(&c, text)
				line := judged(c, text)
				if err := c.Validate(); err != nil && (cli.CodeOf(err) != cli.ExitUsage ||
					strings.ContainsAny(err.Error(), "\n\x00\u202e") || !strings.Contains(err.Error(), k.key)) {
					t.Errorf("%s %q: exit %d: %q", k.key, text, cli.CodeOf(err), err)
				}
				if insecure || k.key == "http" {
					all.WriteString(line)
				}
			}
		}
	}
	goldenfile.Match(t, "addresses.txt", all.String())
}

// TestOnlyPlainHTTPNeedsInsecure: the other ports are encrypted.
func TestOnlyPlainHTTPNeedsInsecure(t *testing.T) {
	for key, plain := range map[string]bool{
		"http": true, "kube.watchdog.listen": true, "peer": false, "gossip": false,
	} {
		at := slices.IndexFunc(addressKeys, func(k addressKey) bool { return k.key == key })
		for _, insecure := range []bool{true, false} {
			c := Default()
			c.Site, c.Insecure, c.Advertise = "a", insecure, "lan"
			addressKeys[at].set(&c, "0.0.0.0:7801")
			err := c.Validate()
			if refused := plain && !insecure; (err != nil) != refused ||
				err != nil && !strings.Contains(err.Error(), "--insecure") {
				t.Errorf("%s on the network, insecure %v: %v", key, insecure, err)
			}
		}
	}
}

// TestAddressPairs: addresses that are right by themselves and wrong together.
func TestAddressPairs(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(c *Config)
		want string // "" = accepted
	}{
		"gossip is peer":           {func(c *Config) { c.Gossip = c.Peer }, "peer 127.0.0.1:7701 and gossip 127.0.0.1:7701 are one address: give each a port"},
		"http is peer":             {func(c *Config) { c.HTTP = c.Peer }, "http 127.0.0.1:7701 and peer 127.0.0.1:7701 are one address"},
		"in another spelling":      {func(c *Config) { c.Gossip = "LOCALHOST.:7701" }, "are one address"},
		"everywhere":               {func(c *Config) { c.HTTP = ":7701" }, "are one address"},
		"pprof is http":            {func(c *Config) { c.PProf = c.HTTP }, "http 127.0.0.1:7700 and pprof 127.0.0.1:7700 are one address"},
		"the watchdogs' is http":   {func(c *Config) { c.Kube.Watchdog.Listen = ":7700" }, "kube.watchdog.listen :7700 are one address"},
		"two addresses, one port":  {func(c *Config) { c.Gossip = "127.0.0.2:7701" }, ""},
		"free ports":               {func(c *Config) { c.HTTP, c.Peer, c.Gossip = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0" }, ""},
		"everywhere, with a name":  {func(c *Config) { c.HTTP, c.Peer, c.Gossip, c.Advertise = ":7700", "[::]:7701", "0.0.0.0:7702", "lan" }, ""},
		"everywhere, nameless":     {func(c *Config) { c.Gossip = "0.0.0.0:7702" }, "name this host with advertise"},
		"a name, free ports":       {func(c *Config) { c.Peer, c.Advertise = "127.0.0.1:0", "lan" }, "give http, peer and gossip fixed ones instead of 127.0.0.1:0"},
		"gossip_join twice":        {func(c *Config) { c.GossipJoin = []string{"lan:1", "10.0.0.9:1", "LAN.:1"} }, `gossip_join "LAN.:1": is given twice, also as "lan:1": leave one out`},
		"gossip_join twice, IPv6":  {func(c *Config) { c.GossipJoin = []string{"[2001:db8:0::9]:1", "[2001:db8::9]:1"} }, "is given twice"},
		"gossip_join twice, lo":    {func(c *Config) { c.GossipJoin = []string{"localhost:1", "127.0.0.1:1"} }, "is given twice"},
		"gossip_join two ports":    {func(c *Config) { c.GossipJoin = []string{"lan:1", "lan:2"} }, ""},
		"gossip_join a comma more": {func(c *Config) { c.GossipJoin = []string{"lan:1", ""} }, `gossip_join "": is empty: write HOST:PORT`},
		"gossip_join own name":     {func(c *Config) { c.Advertise, c.GossipJoin = "lan", []string{"LAN:7701"} }, "own peer, and no gossip port"},
		"gossip_join own ports":    {func(c *Config) { c.Gossip, c.Advertise, c.GossipJoin = ":7702", "lan", []string{"127.0.0.1:7700"} }, "own http, and no gossip port"},
		"join an address":          {func(c *Config) { c.Join = "lan:7701" }, "a broker joins by an invitation, not through an address"},
		"join addresses":           {func(c *Config) { c.Join = "10.0.0.1:7701,lan:7701" }, "have a member run `cloudshare invite a`"},
		"deny no site":             {func(c *Config) { c.Deny = []string{"b", "C"} }, `deny "C": that is no site's name`},
		"deny itself":              {func(c *Config) { c.Deny = []string{"a"} }, "that is this site itself"},
		"gossip_join own":          {func(c *Config) { c.GossipJoin = []string{"10.0.0.9:7702", "127.0.0.1:7702"} }, ""},
		"gossip_join own peer":     {func(c *Config) { c.GossipJoin = []string{"127.0.0.1:7701"} }, "own peer, and no gossip port"},
	} {
		c := Default()
		c.Site, c.Insecure = "a", true
		tc.edit(&c)
		err := c.Validate()
		if (err == nil) != (tc.want == "") || err != nil &&
			(cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// FuzzAddress: what the configuration accepts, nobody behind it refuses; what it
// refuses, it refuses in one bounded line.
func FuzzAddress(f *testing.F) {
	for _, text := range addressForms {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			if line := cli.Usage("join %.100q: %w", text, err).Error(); strings.ContainsAny(line, "\n\r\x00") || len(line) > 2000 {
				t.Fatalf("%q", line)
			}
			return
		}
		host, _, cause := net.SplitHostPort(text)
		if cause != nil || len(host) > 0 != (a.host != "") {
			t.Fatalf("%q: %+v, %v", text, a, cause)
		}
		if b, err := parseAddress(net.JoinHostPort(a.host, fmt.Sprint(a.port))); err != nil || b != a {
			t.Fatalf("%q: %+v is %+v again, %v", text, a, b, err)
		}
		if a.everywhere() || a.port == 0 {
			return
		}
		if err := relay.CheckAddress(text); err != nil {
			t.Fatal(err)
		}
		g := membership.Config{Site: "a", Federation: [16]byte{1}, Listen: "127.0.0.1:0", Advertise: text}
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		if ip, err := netip.ParseAddr(host); (err == nil) != a.ip.IsValid() || err == nil && ip.Unmap() != a.ip {
			t.Fatalf("%q: %+v", text, a)
		}
	})
}
