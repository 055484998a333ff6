package relay

import (
	"fmt"
	"net"
	"testing"
)

// from is a connection of a host.
type from struct {
	net.Conn
	host string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.host), Port: 1} }

func (f from) Close() error { return nil }

// TestSilentGiveWay: silent connections keep nobody out. The silent one that came
// first gives way, of the host that has most of them.
func TestSilentGiveWay(t *testing.T) {
	c := newConnections()
	c.maxFresh, c.maxHostFresh = 8, 4
	add := func(host string, gone *accepted) *accepted {
		t.Helper()
		a, victim := c.add(from{host: host})
		if a == nil || victim != gone {
			t.Fatalf("one of %s: taken in %v, and %v gives way, want %v", host, a != nil, victim, gone)
		}
		return a
	}
	var first []*accepted
	for _, host := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1"} {
		first = append(first, add(host, nil))
	}
	add("10.0.0.1", first[0])
	for i := range 4 {
		add(fmt.Sprintf("10.0.0.%d", 2+i), nil)
	}
	member := add("10.0.0.9", first[1])
	if _, ok := c.greet(member, Preamble{Kind: KindRaft, Site: "a"}); !ok {
		t.Error("a member that greets is refused")
	}
	if _, ok := c.greet(first[2], Preamble{Kind: KindRaft, Site: "a"}); !ok {
		t.Error("another one that greets is refused")
	}
	if _, ok := c.greet(first[0], Preamble{Kind: KindRaft, Site: "a"}); ok {
		t.Error("a connection that gave way greets")
	}
}

// TestGreetedGiveWay: beyond the bounds of a kind and a site the connection gives way
// that has said nothing for longest; a question that is being answered does not. One
// that never came whole once kept the leader's own from a voter.
func TestGreetedGiveWay(t *testing.T) {
	for _, kind := range []Kind{KindRaft, KindForward, KindJoin, KindFeed} {
		c := newConnections()
		greet := func(site string) (a, victim *accepted, ok bool) {
			a, _ = c.add(from{host: "10.0.0.1"})
			victim, ok = c.greet(a, Preamble{Kind: kind, Site: site})
			return a, victim, ok
		}
		var all []*accepted
		for range boundsOf(kind).site {
			a, victim, ok := greet("a")
			if victim != nil || !ok {
				t.Fatalf("kind %d: refused at once", kind)
			}
			all = append(all, a)
		}
		all[0].spoke.Add(1 << 40) // it is in use
		newest, victim, ok := greet("a")
		if victim != all[1] || !ok {
			t.Errorf("kind %d: %v gives way (%v), not the one that said nothing for longest", kind, victim, ok)
		}
		for _, a := range append(all, newest) {
			QuestionReceived(&acceptedConn{of: a})
		}
		if _, victim, ok = greet("a"); boundsOf(kind).stays == (victim != nil || ok) {
			t.Errorf("kind %d: %v gives way (%v) where all have asked", kind, victim, ok)
		}
		if _, victim, ok := greet("b"); !ok || victim != nil {
			t.Errorf("kind %d: another site's is refused", kind)
		}
	}
}

// TestGreetedOfManySites: strangers under many names keep nobody out either.
func TestGreetedOfManySites(t *testing.T) {
	c := newConnections()
	for i := range 2 * maxGreeted {
		a, _ := c.add(from{host: "10.0.0.1"})
		if _, ok := c.greet(a, Preamble{Kind: KindForward, Site: fmt.Sprintf("s%d", i/2)}); !ok {
			t.Fatalf("number %d is refused", i)
		}
		if len(c.all) > maxGreeted+1 {
			t.Fatalf("%d connections", len(c.all))
		}
	}
	for a := range c.all {
		c.remove(a)
		c.remove(a)
	}
	if len(c.counts) > 0 {
		t.Errorf("counted are %v of none", c.counts)
	}
}
