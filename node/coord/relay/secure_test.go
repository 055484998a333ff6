package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/identity"
)

// roster is what a test decides about keys.
type roster struct {
	mu    sync.Mutex
	by    map[identity.Public]Standing
	sites map[string]identity.Public
}

func newRoster() *roster {
	return &roster{by: map[identity.Public]Standing{}, sites: map[string]identity.Public{}}
}

func (r *roster) set(k identity.Key, s Standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[k.Public()] = s
	r.sites[s.Site] = k.Public()
}

func (r *roster) Find(key identity.Public) Standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[key]
}

func (r *roster) Key(site string) (identity.Public, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.sites[site]
	return k, ok
}

// secured is a federation of sites a and b, both electors, c, none, and d, banned, of which a listens.
type secured struct {
	*testing.T
	roster  *roster
	keys    map[string]identity.Key
	a       *Identity
	addr    string
	taken   chan net.Conn
	log     *logged
	mux     *Mux
	network *Network // of a
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{
		T: t, roster: newRoster(), keys: map[string]identity.Key{}, taken: make(chan net.Conn, 64), log: &logged{},
	}
	for site, standing := range map[string]Standing{
		"a": {Elector: true}, "b": {Elector: true}, "c": {}, "d": {Elector: true, Banned: true},
	} {
		standing.Site = site
		s.keys[site] = identity.Generate()
		s.roster.set(s.keys[site], standing)
	}
	s.a = s.identity(s.keys["a"])
	s.network = &Network{Identity: s.a}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	s.mux = NewMux(ln, "a", 2*time.Second, zerolog.New(s.log), s.network)
	s.mux.SetGroup(testGroup)
	for _, k := range []Kind{KindRaft, KindForward, KindJoin, KindFeed, KindCompare, KindEnroll} {
		s.mux.Handle(k, func(conn net.Conn, _ Preamble) { s.taken <- conn })
	}
	s.mux.Serve()
	t.Cleanup(s.mux.Close)
	return s
}

func (s *secured) identity(key identity.Key) *Identity {
	s.Helper()
	i, err := NewIdentity(key, s.roster)
	if err != nil {
		s.Fatal(err)
	}
	return i
}

// dial opens a connection to a with a key, in a site's name, and sends a byte behind the Preamble.
func (s *secured) dial(key identity.Key, as string, to Peer, k Kind) (net.Conn, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	d := Dialer{Net: &Network{Identity: s.identity(key)}, Site: as}
	if to.Addr == "" {
		to.Addr = s.addr
	}
	conn, err := d.Dial(ctx, to, k, testGroup)
	if err == nil {
		s.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte{1})
	}
	return conn, err
}

func (s *secured) accepted() net.Conn {
	s.Helper()
	select {
	case conn := <-s.taken:
		s.Cleanup(func() { _ = conn.Close() })
		return conn
	case <-time.After(time.Minute):
		s.Fatalf("no connection; log: %s", s.log)
		return nil
	}
}

// Who may open which connection: the table of the peer port.
func TestWhoMayConnect(t *testing.T) {
	s := newSecured(t)
	stranger := identity.Generate()
	toA := Peer{Site: "a"}
	for _, c := range []struct {
		what string
		key  identity.Key
		as   string
		kind Kind
		err  error
	}{
		{"an elector on raft", s.keys["b"], "b", KindRaft, nil},
		{"a member's calls", s.keys["c"], "c", KindForward, nil},
		{"a member's feed", s.keys["c"], "c", KindFeed, nil},
		{"a member compares", s.keys["c"], "c", KindCompare, nil},
		{"a member asks to join", s.keys["c"], "c", KindJoin, nil},
		{"a stranger joins", stranger, "new", KindJoin, ErrUnknownKey},
		{"a stranger asks for admission", stranger, "new", KindEnroll, nil},
		{"a member asks for another's admission", s.keys["c"], "c", KindEnroll, nil},
		{"no elector on raft", s.keys["c"], "c", KindRaft, ErrNotElector},
		{"a stranger on raft", stranger, "b", KindRaft, ErrUnknownKey},
		{"a stranger's calls", stranger, "new", KindForward, ErrUnknownKey},
		{"a stranger's feed", stranger, "c", KindFeed, ErrUnknownKey},
		{"a stranger compares", stranger, "c", KindCompare, ErrUnknownKey},
		{"a stranger joins in a member's name", stranger, "c", KindJoin, ErrUnknownKey},
		{"a member under another's name", s.keys["c"], "b", KindForward, ErrOtherName},
		{"a member on raft under an elector's name", s.keys["c"], "b", KindRaft, ErrOtherName},
		{"a member joins under a new name", s.keys["c"], "new", KindJoin, ErrOtherName},
		{"a banned site on raft", s.keys["d"], "d", KindRaft, ErrBanned},
		{"a banned site's calls", s.keys["d"], "d", KindForward, ErrBanned},
		{"a banned site joins", s.keys["d"], "d", KindJoin, ErrBanned},
		{"a banned key joins under a new name", s.keys["d"], "new", KindJoin, ErrBanned},
		{"a banned key asks for admission", s.keys["d"], "new", KindEnroll, ErrBanned},
	} {
		_, err := s.dial(c.key, c.as, toA, c.kind)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.what, err, c.err)
		}
		if c.err == nil {
			s.accepted()
		} else if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), s.addr) {
			t.Errorf("%s: the error is no line with the address: %v", c.what, err)
		}
	}
	if len(s.taken) > 0 {
		t.Errorf("%d connections too many reached their handler", len(s.taken))
	}
}

// The dialer learns who answers before it has sent anything: by the key, not by a name that it says.
func TestDialerKnowsWhoAnswers(t *testing.T) {
	s := newSecured(t)
	key := s.keys["c"]
	for _, c := range []struct {
		what string
		to   Peer
		kind Kind
		says string
	}{
		{"another site", Peer{Site: "b"}, KindForward, "that of a, not of b"},
		{"a site that is not known", Peer{Site: "z"}, KindForward, "key of site z is not known"},
		{"another node", Peer{Node: [16]byte{1}}, KindJoin, "not 01000000"},
		{"nobody in particular", Peer{}, KindForward, "not known"},
	} {
		_, err := s.dial(key, "c", c.to, c.kind)
		if !errors.Is(err, ErrOtherKey) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for _, to := range []Peer{{Site: "a"}, {Node: s.keys["a"].Public().Node()}, {}} {
		if _, err := s.dial(key, "c", to, KindJoin); err != nil {
			t.Errorf("%+v: %v", to, err)
		}
		s.accepted()
	}
	// A site that is banned is not dialed any more.
	s.roster.set(s.keys["a"], Standing{Site: "a", Elector: true, Banned: true})
	if _, err := s.dial(key, "c", Peer{Site: "a"}, KindForward); !errors.Is(err, ErrBanned) {
		t.Errorf("dialed a banned site: %v", err)
	}
}

// A member that was expelled while its broker was away hears by which motion; one that this member alone denies does
// not.
func TestBannedSiteHearsTheMotion(t *testing.T) {
	s := newSecured(t)
	at := Peer{Site: "a"}
	for motion, want := range map[uint64]string{7: "by motion 7", 0: "or denied by that member"} {
		s.roster.set(s.keys["d"], Standing{Site: "d", Banned: true, Motion: motion})
		_, err := s.dial(s.keys["d"], "d", at, KindForward)
		if !errors.Is(err, ErrBanned) || !strings.Contains(err.Error(), want) {
			t.Errorf("motion %d: %v", motion, err)
		}
	}
	for text, want := range map[string]uint64{
		"a\n12": 12, "a": 0, "": 0, "\n": 0, "a\n-1": 0, "a\n99999999999999999999": 0, "a\n1\n2": 0,
	} {
		if got := motionOf([]byte(text)); got != want {
			t.Errorf("%q: motion %d", text, got)
		}
	}
}

// Whoever speaks no TLS, or shows no key, gets no answer to anything, but for one line that says that this is no API.
func TestStrangersGetNoAnswer(t *testing.T) {
	s := newSecured(t)
	greeting := Preamble{Kind: KindJoin, Site: "new", Means: "a"}.Encode()
	plain := func() net.Conn {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return conn
	}
	for name, say := range map[string]string{
		"a preamble without TLS": string(greeting), "HTTP": "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "noise": "\x16\x03\x01\xff\xff\xff",
	} {
		conn := plain()
		_, _ = io.WriteString(conn, say)
		answer, _ := io.ReadAll(conn)
		if name == "HTTP" && string(answer) == httpAnswer {
			continue
		}
		if strings.Contains(string(answer), "a\x00") || len(answer) > 7 { // at most one alert of TLS
			t.Errorf("%s is answered %q", name, answer)
		}
	}
	// As `openssl s_client` would: TLS 1.3, any server is fine, no key of its own.
	conn := tls.Client(plain(), &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{identity.Protocol}, MinVersion: tls.VersionTLS13,
	})
	if err := conn.Handshake(); err == nil {
		_, _ = conn.Write(greeting)
		if answer, err := io.ReadAll(conn); len(answer) > 0 || err == nil {
			t.Errorf("a client without a key is answered %q, %v", answer, err)
		}
	}
	if len(s.taken) > 0 {
		t.Error("a stranger's connection reached a handler")
	}
}

// A site that is expelled, or gets another key, loses the connections that it has, on both ends.
func TestRecheckEndsConnections(t *testing.T) {
	s := newSecured(t)
	client := s.identity(s.keys["b"])
	d := Dialer{Net: &Network{Identity: client}, Site: "b"}
	dialed, err := d.Dial(t.Context(), Peer{Site: "a", Addr: s.addr}, KindRaft, testGroup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = dialed.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	accepted := s.accepted()
	if n := s.a.Recheck() + client.Recheck(); n != 0 {
		t.Fatalf("%d connections were closed though nothing has changed", n)
	}
	s.roster.set(s.keys["b"], Standing{Site: "b"}) // no elector any more: no raft
	if n := s.a.Recheck(); n != 1 {
		t.Errorf("%d connections were closed", n)
	}
	if _, err = io.ReadAll(accepted); err == nil {
		t.Error("the accepted connection is still open")
	}
	if _, err = io.ReadFull(dialed, make([]byte, 1)); err == nil {
		t.Error("the dialed connection is still open")
	}
	if n := client.Recheck(); n != 0 { // it dialed an elector
		t.Errorf("the dialer closed %d connections", n)
	}
	_ = dialed.Close()

	dialed, err = d.Dial(t.Context(), Peer{Site: "a", Addr: s.addr}, KindForward, testGroup)
	if err != nil {
		t.Fatal(err)
	}
	s.roster.set(identity.Generate(), Standing{Site: "a", Elector: true}) // a's key was replaced
	s.roster.set(s.keys["a"], Standing{})
	if n := client.Recheck(); n != 1 {
		t.Errorf("the dialer closed %d connections to a key that is nobody's", n)
	}
	if _, err = dialed.Write([]byte{1}); err == nil {
		t.Error("the connection to the old key is still open")
	}
}

// TestReplacedKeyHearsOfIt: a site whose key is replaced hears that by the connections of raft that its leader has to
// it: they stay for a moment. Those that it has dialed, others, and those of an expelled site end at once.
func TestReplacedKeyHearsOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		kind  Kind
		after Standing // of the site, with another key
		stays bool
	}{
		"raft":     {KindRaft, Standing{Elector: true}, true},
		"forward":  {KindForward, Standing{Elector: true}, false},
		"expelled": {KindRaft, Standing{Banned: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecured(t)
			leader := s.identity(s.keys["b"])
			d := Dialer{Net: &Network{Identity: leader}, Site: "b"}
			conn, err := d.Dial(t.Context(), Peer{Site: "a", Addr: s.addr}, c.kind, testGroup)
			if err == nil {
				_, err = conn.Write([]byte{1})
			}
			if err != nil {
				t.Fatal(err)
			}
			accepted := s.accepted()
			s.roster.set(s.keys["a"], Standing{})
			c.after.Site = "a"
			s.roster.set(identity.Generate(), c.after)
			began := time.Now()
			if n := leader.Recheck(); (n == 0) != c.stays {
				t.Fatalf("%d connections were closed", n)
			}
			if !c.stays {
				return
			}
			if _, err = conn.Write([]byte("news")); err != nil {
				t.Fatal(err)
			}
			heard, _ := io.ReadAll(accepted) // to its end
			if took := time.Since(began); string(heard) != "\x01news" || took < newsWait {
				t.Errorf("heard %q, and the end of it after %s", heard, took)
			}
		})
	}
}

// TestReplacedKeyOpensNothing: that connections stay for a moment is for those that there are. Whoever answers with a
// replaced key, where a node is dialed and not a site, is given none.
func TestReplacedKeyOpensNothing(t *testing.T) {
	s := newSecured(t)
	s.roster.set(s.keys["a"], Standing{})
	s.roster.set(identity.Generate(), Standing{Site: "a", Elector: true})
	to := Peer{Site: "a", Node: s.keys["a"].Public().Node(), Addr: s.addr}
	if conn, err := s.dial(s.keys["b"], "b", to, KindRaft); err == nil {
		_ = conn.Close()
		t.Error("a connection of raft was opened to a key that is nobody's")
	}
}

// Strangers who connect and do not shake hands take no place from a member.
func TestSilentHandshakes(t *testing.T) {
	s := newSecured(t)
	s.mux.accepted.mu.Lock()
	s.mux.accepted.maxFresh, s.mux.accepted.maxHostFresh = 32, 32
	s.mux.accepted.mu.Unlock()
	for range 64 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte{0x16, 3, 1}) // a record of TLS begins
	}
	for range 8 {
		if _, err := s.dial(s.keys["b"], "b", Peer{Site: "a"}, KindForward); err != nil {
			t.Fatal(err)
		}
		s.accepted()
	}
}

// A connection that ended, however it did, is no longer known.
func TestNoConnectionIsKept(t *testing.T) {
	s := newSecured(t)
	client := s.identity(s.keys["b"])
	d := Dialer{Net: &Network{Identity: client}, Site: "b"}
	for _, to := range []Peer{{Site: "a", Addr: s.addr}, {Site: "b", Addr: s.addr}} {
		if conn, err := d.Dial(t.Context(), to, KindForward, testGroup); err == nil {
			_, _ = conn.Write([]byte{1})
			_ = s.accepted().Close()
			_ = conn.Close()
		}
	}
	_, _ = s.dial(identity.Generate(), "b", Peer{Site: "a"}, KindForward)
	s.mux.Close()
	for name, i := range map[string]*Identity{"server": s.a, "client": client} {
		i.mu.Lock()
		if n := len(i.conns); n != 0 {
			t.Errorf("%s knows %d connections", name, n)
		}
		i.mu.Unlock()
	}
}
