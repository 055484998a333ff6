package raftlog

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// reopen ends a member, if it runs, and starts it with a changed configuration.
func (c *cluster) reopen(t *testing.T, site string, change func(*Config)) *Log {
	t.Helper()
	c.mu.Lock()
	former := c.logs[site]
	c.mu.Unlock()
	if former != nil {
		if err := former.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cfg := c.config(site, coordtest.NewMachine())
	change(&cfg)
	l, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatalf("open %s again: %v", site, err)
	}
	c.mu.Lock()
	c.logs[site] = l
	c.mu.Unlock()
	return l
}

// heard waits until a member has what its leader had.
func heard(t *testing.T, l *Log) {
	t.Helper()
	await(t, l.cfg.Site+" is heard", func() bool { return l.Status().CaughtUp })
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// freeAddr is an address that nobody listens on, nor takes while a member that had it is away: those who dial it then
// have ports of the system's own range.
func freeAddr(t testing.TB) string {
	t.Helper()
	port, err := ensemble.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// TestPhantomQuorum: what the group has as a voter's address is another voter's.
// That one takes no part in the other's name: two of five order nothing.
func TestPhantomQuorum(t *testing.T) {
	c := newCluster(t)
	sites := []string{"a", "b", "cc", "d", "e"}
	for _, s := range sites {
		c.open(t, s)
	}
	c.voters(t, sites...)
	a, b := c.logs["a"], c.logs["b"]
	id := register(t, a)
	if err := c.logs["e"].Close(); err != nil {
		t.Fatal(err)
	}
	// As a leader did it that asked nobody.
	forged := transport.ServerAddress("e", "localhost:"+portOf(b.Addr()))
	await(t, "the forged address ordered", func() bool {
		for c.leader(t) != a {
			c.MoveLead(t)
		}
		return a.raft.AddVoter("e", forged, 0, time.Second).Error() == nil
	})
	await(t, "b has the forged address", func() bool { return b.configuredPeer("e").Addr == transport.HostPort(forged) })
	for _, s := range []string{"cc", "d"} {
		c.Cut(s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*c.time.election)
	defer cancel()
	if r, err := a.Propose(ctx, command.Command{ID: id, Body: &command.Addresses{HTTP: "phantom"}}); err == nil {
		t.Fatalf("two of five voters ordered %v", r)
	}
}

// TestSpellingOfAnotherVoter: a voter that restarts with another spelling of
// another voter's address changes nothing, and is told what to do.
func TestSpellingOfAnotherVoter(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	b, cc := c.open(t, "b"), c.open(t, "cc")
	c.voters(t, "a", "b", "cc")
	was := cc.Addr()
	out := &lines{}
	c.reopen(t, "cc", func(cfg *Config) {
		cfg.Advertise, cfg.Logger = "localhost:"+portOf(b.Addr()), zerolog.New(out)
	})
	await(t, "cc is told", func() bool { return out.count(`is site \"b\": correct `) > 0 })
	for _, l := range c.running() {
		if l.cfg.Site != "cc" && l.configuredPeer("cc").Addr != was {
			t.Errorf("%s has cc at %s", l.cfg.Site, l.configuredPeer("cc").Addr)
		}
	}
	heard(t, c.reopen(t, "cc", func(*Config) {}))
}

// TestAdvertiseTypo: a voter whose address nobody hears keeps the one that the
// group has; corrected, it is back. Twice, because its own configuration must not
// say that nothing is to be done.
func TestAdvertiseTypo(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	b := c.open(t, "b")
	c.open(t, "cc")
	c.voters(t, "a", "b", "cc")
	was := b.Addr()
	for range 2 {
		out := &lines{}
		c.reopen(t, "b", func(cfg *Config) {
			cfg.Advertise, cfg.Logger = "127.0.0.1:1", zerolog.New(out)
		})
		await(t, "b is told", func() bool { return out.count("hears nobody at address 127.0.0.1:1 of site b") > 0 })
		lead := c.leader(t)
		if at := lead.configuredPeer("b").Addr; at != was {
			t.Errorf("the leader %s has b at %s, not %s", lead.cfg.Site, at, was)
		}
		heard(t, c.reopen(t, "b", func(*Config) {}))
		register(t, c.logs["b"])
	}
}

// TestFounderTypo: a founder's address is in the first configuration before anybody
// can dial it. So it asks at its own address, too, and is told, and those who join
// through its true address say that it is not reached; corrected, all is well.
func TestFounderTypo(t *testing.T) {
	for _, wrong := range []string{"nobody", "another site"} {
		t.Run(wrong, func(t *testing.T) {
			c := newCluster(t)
			cfg, out, joiner := c.config("a", coordtest.NewMachine()), &lines{}, &lines{}
			want := "hears nobody at address 127.0.0.1:1 of site a"
			here := freeAddr(t)
			cfg.Listen, cfg.Advertise, cfg.Logger = here, "127.0.0.1:1", zerolog.New(out)
			if wrong == "another site" {
				other := newCluster(t).open(t, "other")
				cfg.Advertise, want = other.Addr(), `is site \"other\": correct `
			}
			a, err := Open(patience(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.logs["a"] = a
			await(t, "the founder is told", func() bool { return out.count(want) > 0 })
			b := c.config("b", coordtest.NewMachine())
			b.Join, b.Logger, b.Bootstrap = []string{here}, zerolog.New(joiner), false
			if c.logs["b"], err = Open(patience(t), b); err != nil {
				t.Fatal(err)
			}
			await(t, "b says who is not reached", func() bool { return joiner.count("site a is not reached at "+cfg.Advertise) > 0 })
			a = c.reopen(t, "a", func(cfg *Config) { cfg.Listen, cfg.Join, cfg.Bootstrap = here, nil, false })
			await(t, "the group has a where it is", func() bool { return c.logs["b"].configuredPeer("a").Addr == here })
			register(t, a)
		})
	}
}

// TestJoinTypo: who joins with an address that nobody hears waits and says so; its
// directory stays empty, so that it joins once that is corrected.
func TestJoinTypo(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	cfg := c.config("b", coordtest.NewMachine())
	out := &lines{}
	waits := make(chan string, 1)
	cfg.Advertise, cfg.Logger = "127.0.0.1:1", zerolog.New(out)
	cfg.Waiting = func(through []string, why error) {
		if len(through) == 1 && through[0] == a.Addr() && strings.Contains(why.Error(), "hears nobody at address 127.0.0.1:1 of site b") {
			select {
			case waits <- why.Error():
			default:
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Open(ctx, cfg)
		ended <- err
	}()
	if why := <-waits; !strings.Contains(why, "correct its `advertise`") {
		t.Errorf("it waits because %s", why)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if out.count("not joined yet") == 0 || out.count(a.Addr()) == 0 {
		t.Error("the log says nothing of it")
	}
	if !a.configuredPeer("b").None() {
		t.Errorf("the group has it at %s", a.configuredPeer("b").Addr)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "member.json")); err == nil {
		t.Error("the directory is claimed")
	}
	heard(t, c.open(t, "b"))
}

// TestJoinFramesOfAStranger: whoever asks must answer at the address. Frames that
// name a new site, or a voter with its node, change nothing.
func TestJoinFramesOfAStranger(t *testing.T) {
	c := newCluster(t)
	for _, s := range []string{"a", "b", "cc"} {
		c.open(t, s)
	}
	c.voters(t, "a", "b", "cc")
	lead := c.leader(t)
	d := dialer{&relay.Dialer{Net: &relay.Network{}, Site: "x"}}
	before := fmt.Sprint(lead.raft.GetConfiguration().Configuration())
	for _, q := range []joinRequest{
		{Site: "x", Node: strings.Repeat("0f", 16), Addr: "127.0.0.1:1"},
		{Site: "x", Node: strings.Repeat("0f", 16), Addr: c.logs["b"].Addr()},
		{Site: "b", Node: hex.EncodeToString(c.logs["b"].cfg.Node[:]), Addr: "127.0.0.1:1"},
		{Site: "cc", Node: hex.EncodeToString(c.logs["cc"].cfg.Node[:]), Addr: "127.0.0.1:2"},
		{Site: "b", Node: hex.EncodeToString(c.logs["b"].cfg.Node[:]), Addr: c.logs["cc"].Addr()},
		{Site: "b", Node: hex.EncodeToString(c.logs["b"].cfg.Node[:]), Addr: "localhost:" + portOf(c.logs["b"].Addr())},
	} {
		for _, instance := range []string{"", "ABC", strings.Repeat("x", 65)} {
			q.Instance = instance
			a, err := d.join(patience(t), relay.Peer{Addr: lead.Addr()}, q)
			if err != nil || a.Code != joinRefused && a.Code != joinUnheard || a.Text == "" {
				t.Errorf("%+v: %+v, %v", q, a, err)
			}
		}
	}
	if after := fmt.Sprint(lead.raft.GetConfiguration().Configuration()); after != before {
		t.Errorf("%s became %s", before, after)
	}
	register(t, c.logs["b"])
}

// TestOneIdentityTwice: a second process on a copy of a member's data does not take
// its address away.
func TestOneIdentityTwice(t *testing.T) {
	c := newCluster(t)
	a, b := c.open(t, "a"), c.open(t, "b")
	register(t, a)
	register(t, b)
	c.openErr(t, "copy", coord.ErrJoinRefused, func(cfg *Config) {
		cfg.Join, cfg.Site, cfg.Node = []string{a.Addr()}, "b", b.cfg.Node
	}, "site b runs twice, at "+b.Addr(), "stop one")
}

// TestJoinKeepsItsPeers: a member that was admitted and ended before the leader's
// first word goes on joining when it starts again, through the peers that it had or
// through others.
func TestJoinKeepsItsPeers(t *testing.T) {
	c := newCluster(t)
	for _, s := range []string{"a", "b", "cc"} {
		c.open(t, s)
	}
	c.voters(t, "a", "b", "cc")
	c.Lag("d")
	d := c.open(t, "d")
	if !d.configuredPeer("d").None() {
		t.Fatal("d has a configuration")
	}
	d = c.reopen(t, "d", func(cfg *Config) { cfg.Join = nil })
	if m, err := loadMember(d.cfg.Dir); err != nil || len(m.Through) == 0 {
		t.Fatalf("the join peers are gone: %+v, %v", m, err)
	}
	here := c.logs["b"].Addr()
	d = c.reopen(t, "d", func(cfg *Config) { cfg.Join = []string{here} })
	if m, err := loadMember(d.cfg.Dir); err != nil || len(m.Through) != 1 || m.Through[0] != here {
		t.Fatalf("the join peers are not replaced: %+v, %v", m, err)
	}
	c.Heal("d")
	heard(t, d)
	await(t, "the join is over", func() bool {
		m, err := loadMember(d.cfg.Dir)
		return err == nil && len(m.Through) == 0
	})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	c.openErr(t, "d", ErrExistingData, func(cfg *Config) { cfg.Join = []string{here} })
	heard(t, c.reopen(t, "d", func(*Config) {}))
}

// asking blocks a leader's question to a site: whether it wants to be a voter.
type asking struct {
	net.Conn
	of     string
	asked  chan<- struct{}
	goesOn <-chan struct{}
}

func (a *asking) Write(b []byte) (int, error) {
	if len(b) > relay.KindAt && b[relay.KindAt] == byte(relay.KindJoin) && bytes.HasSuffix(b, []byte(a.of)) {
		select {
		case a.asked <- struct{}{}:
		case <-a.goesOn:
		}
		<-a.goesOn
	}
	return a.Conn.Write(b)
}

// TestMovedWhilePromoted: a member that moves while the leader asks another one
// whether it stands is promoted at its new address. The old one made it a voter whom
// nobody heard, and left no quorum.
func TestMovedWhilePromoted(t *testing.T) {
	c := newCluster(t)
	c.time.rpc = 2 * coordtest.Patience // the leader waits for the test
	asked, goesOn := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(goesOn) })
	t.Cleanup(goOn)
	cfg := c.config("a", coordtest.NewMachine())
	cfg.Net.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := c.net.Dial(ctx, "a", addr)
		if err != nil {
			return nil, err
		}
		return &asking{conn, "site-d", asked, goesOn}, nil
	}
	a, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.logs["a"] = a
	register(t, a)
	c.open(t, "b")
	if c.logs["site-d"], err = Open(patience(t), c.config("site-d", coordtest.NewMachine())); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-patience(t).Done():
		t.Fatal("site-d is not asked")
	}
	b := c.reopen(t, "b", func(cfg *Config) { cfg.Listen = "127.0.0.1:0" })
	await(t, "b has moved", func() bool { return a.configuredPeer("b").Addr == b.Addr() })
	goOn()
	c.voters(t, "a", "b", "site-d")
	if at := a.configuredPeer("b").Addr; at != b.Addr() {
		t.Errorf("b is a voter at %s, and listens at %s", at, b.Addr())
	}
	register(t, b)
}

// gossip is what members tell each other of their addresses.
type gossip struct {
	mu   sync.Mutex
	addr map[string]string
}

func (g *gossip) tell(site, addr string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addr[site] = addr
}

func (g *gossip) known(site string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []string{"127.0.0.1:1", g.addr[site]} // the first is out of date
}

// TestGossipLies: where gossip says a member is, another one answers.
func TestGossipLies(t *testing.T) {
	c := newCluster(t)
	for _, s := range []string{"a", "b", "cc"} {
		c.open(t, s)
	}
	c.voters(t, "a", "b", "cc")
	lead := c.leader(t)
	for _, s := range []string{"a", "b", "cc"} {
		if to := c.logs[s]; to != lead && lead.verifyPeer(patience(t), relay.Peer{Site: "x", Addr: to.Addr()}) {
			t.Errorf("%s passes for x", s)
		}
	}
	register(t, c.logs["b"])
	theirs := relay.Peer{Site: "b", Addr: c.logs["b"].Addr()}
	if lead != c.logs["b"] && !lead.verifyPeer(patience(t), theirs) {
		t.Error("b is not known as b")
	}
	a := joinReply{Site: "b", Node: strings.Repeat("0f", 16)}
	q := lead.line.request()
	a.Federation, a.Epoch, a.Lineage = q.Federation, q.Epoch, q.Lineage
	if lead.isMember(a, "b") {
		t.Error("another node passes for b")
	}
}

// TestBadAddresses: what a member may ask for, and what it is told.
func TestBadAddresses(t *testing.T) {
	c := newCluster(t)
	var claimed atomic.Value // what b asks for
	c.claims = func(site string) string {
		if addr, ok := claimed.Load().(string); ok && site == "b" {
			return addr
		}
		return ""
	}
	a, b := c.open(t, "a"), c.open(t, "b")
	other := newCluster(t)
	other.fed = [16]byte{2}
	foreign := other.open(t, "x")
	await(t, "the leader is ready", a.Calls.Leads)
	pa, pb := portOf(a.Addr()), portOf(b.Addr())
	two := func(ips ...string) func(context.Context, string) ([]netip.Addr, error) {
		return func(context.Context, string) (out []netip.Addr, err error) {
			for _, ip := range ips {
				out = append(out, netip.MustParseAddr(ip))
			}
			return out, nil
		}
	}
	beside, err := net.Listen("tcp", "127.0.0.2:"+pb) // another site on the port of b
	if err != nil {
		t.Fatal(err)
	}
	stranger := relay.NewMux(beside, "z", time.Second, zerolog.Nop(), &relay.Network{})
	stranger.Handle(relay.KindJoin, func(conn net.Conn, _ relay.Preamble) {
		defer conn.Close()
		if _, err := relay.ReadFrame(conn, nil, maxJoinFrame); err == nil {
			_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), `{"code":"ok","site":"z"}`...)))
		}
	})
	stranger.Serve()
	defer stranger.Close()

	for _, tc := range []struct {
		name, addr string
		lookup     func(context.Context, string) ([]netip.Addr, error)
		code, text string
	}{
		{"its own", b.Addr(), nil, joinOK, ""},
		{"its own by name", "localhost:" + pb, two("127.0.0.1"), joinOK, ""},
		{"upper case and a trailing dot", "LocalHost.:" + pb, two("127.0.0.1"), joinOK, ""},
		{"IPv4-mapped", "[::ffff:127.0.0.1]:" + pb, nil, joinOK, ""},
		{"a name of two, one silent", "localhost:" + pb, two("127.0.0.3", "127.0.0.1"), joinOK, ""},
		{"a name of two, one another site's", "localhost:" + pb, two("127.0.0.1", "127.0.0.2"), joinRefused, `(127.0.0.2:` + pb + `) of site b is site "z"`},
		{"a name of none", "nowhere:" + pb, two(), joinUnheard, "nowhere:" + pb},
		{"a name that is not known", "nowhere.invalid:" + pb, func(context.Context, string) ([]netip.Addr, error) {
			return nil, errors.New("no such host")
		}, joinUnheard, "no such host"},
		{"the leader's", a.Addr(), nil, joinRefused, `is site "a"`},
		{"the leader's, IPv4-mapped", "[::ffff:127.0.0.1]:" + pa, nil, joinRefused, `is site "a"`},
		{"the leader's, by name", "localhost:" + pa, two("127.0.0.1"), joinRefused, `is site "a"`},
		{"of another federation", foreign.Addr(), nil, joinRefused, `is site "x"`},
		{"unreachable", "127.0.0.1:1", nil, joinUnheard, "open the port"},
		{"IPv6, unreachable", "[::1]:1", nil, joinUnheard, "open the port"},
		{"with a zone", "[fe80::1%lo]:" + pb, nil, joinRefused, "has a zone"},
		{"everywhere", "0.0.0.0:" + pb, nil, joinRefused, "no host's own"},
		{"everywhere, IPv6", "[::]:" + pb, nil, joinRefused, "no host's own"},
		{"everywhere, IPv4-mapped", "[::ffff:0.0.0.0]:" + pb, nil, joinRefused, "no host's own"},
		{"multicast", "224.0.0.1:" + pb, nil, joinRefused, "no host's own"},
		{"port 0", "127.0.0.1:0", nil, joinRefused, "has no port"},
		{"port 65536", "127.0.0.1:65536", nil, joinRefused, "has no port"},
		{"port by name", "127.0.0.1:http", nil, joinRefused, "has no port"},
		{"no port", "127.0.0.1", nil, joinRefused, "not HOST:PORT"},
		{"no host", ":" + pb, nil, joinRefused, "not HOST:PORT"},
		{"bare IPv6", "::1", nil, joinRefused, "not HOST:PORT"},
		{"nothing", "", nil, joinRefused, "not HOST:PORT"},
		{"of raft's form", "b@" + b.Addr(), nil, joinRefused, "not HOST:PORT"},
		{"a URL", "http://127.0.0.1:" + pb, nil, joinRefused, "not HOST:PORT"},
		{"a line break", "127.0.0.1\n:" + pb, nil, joinRefused, "not HOST:PORT"},
		{"too long", strings.Repeat("a", command.MaxAddress) + ":" + pb, nil, joinRefused, "is longer than"},
	} {
		a.cfg.lookup = tc.lookup
		q := b.signRequest(b.line.request())
		q.Addr = tc.addr
		claimed.Store(tc.addr)
		reply := a.admitHere(patience(t), q)
		if reply.Code != tc.code || !strings.Contains(reply.Text, tc.text) {
			t.Errorf("%s: %s: %+v, not %s with %q", tc.name, tc.addr, reply, tc.code, tc.text)
		}
		if reply.Code != joinOK && !strings.Contains(reply.Text, "correct `advertise`") && !strings.Contains(reply.Text, "correct its `advertise`") {
			t.Errorf("%s: no remedy in %q", tc.name, reply.Text)
		}
		if want := tc.addr; reply.Code == joinOK && a.configuredPeer("b").Addr != want {
			t.Errorf("%s: the group has %s", tc.name, a.configuredPeer("b").Addr)
		}
		cfg := c.config("new", coordtest.NewMachine())
		cfg.Advertise = tc.addr
		if err := cfg.Validate(); tc.addr != "" && (err != nil) != (tc.code == joinRefused &&
			!strings.Contains(tc.text, "is site")) {
			t.Errorf("%s: configured as %s: %v", tc.name, tc.addr, err)
		}
	}
}
