package relay

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// listening is a member a of the secured federation that serves HTTP.
func listening(s *secured) *HTTPListener {
	s.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	m := NewMux(ln, "a", 2*time.Second, zerolog.New(s.log), s.network)
	m.SetGroup(testGroup)
	l := NewHTTPListener(m)
	m.Serve()
	s.Cleanup(m.Close)
	return l
}

// TestHTTPConnectionsNameTheirSite: whoever serves HTTP knows whose broker asks by its key, and those who have no
// business there do not come through.
func TestHTTPConnectionsNameTheirSite(t *testing.T) {
	s := newSecured(t)
	l := listening(s)
	at := Peer{Site: "a", Addr: l.Addr().String()}
	if _, err := s.dial(s.keys["c"], "c", at, KindHTTP); err != nil { // no elector needed
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.(*HTTPConn).PeerSite(); got != "c" {
		t.Errorf("site %q", got)
	}
	if _, err := s.dial(s.keys["c"], "b", at, KindHTTP); !errors.Is(err, ErrOtherName) {
		t.Errorf("under another name: %v", err)
	}
	if _, err := s.dial(s.keys["d"], "d", at, KindHTTP); !errors.Is(err, ErrBanned) {
		t.Errorf("banned: %v", err)
	}
	s.roster.set(s.keys["c"], Standing{Site: "c", Banned: true})
	if s.a.Recheck() == 0 {
		t.Error("a ban leaves the connection open")
	}
	if _, err = io.ReadAll(conn); err == nil {
		t.Error("the connection of a banned site goes on")
	}
	if err = l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err = l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestBusyHTTPConnectionsStay: those on which nothing is asked give way, those that are answered do not.
func TestBusyHTTPConnectionsStay(t *testing.T) {
	table := newConnections()
	limit := boundsOf(KindHTTP).site
	add := func() (*HTTPConn, net.Conn, bool) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
		a, _ := table.add(here)
		victim, ok := table.greet(a, Preamble{Kind: KindHTTP, Site: "b"})
		if victim == nil {
			return &HTTPConn{Conn: &acceptedConn{Conn: here, of: a, table: table}, site: "b"}, nil, ok
		}
		return nil, victim.conn, ok
	}
	var all []*HTTPConn
	for range limit {
		c, _, ok := add()
		if !ok {
			t.Fatal("no room below the bound")
		}
		c.SetBusy(true)
		all = append(all, c)
	}
	if _, victim, ok := add(); ok || victim != nil {
		t.Error("one that is answered gives way")
	}
	all[7].SetBusy(false)
	if _, victim, ok := add(); !ok || victim != all[7].Conn.(*acceptedConn).Conn {
		t.Errorf("the idle one stays: %v", ok)
	}
}
