package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

type whoKey struct{}

func as(who string) context.Context { return context.WithValue(context.Background(), whoKey{}, who) }

func whoOf(ctx context.Context) string {
	who, _ := ctx.Value(whoKey{}).(string)
	return who
}

func statusOf(err error) int {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return 0
	}
	return p.Status
}

// TestNobodyHasAllPlaces: who has half of the places is refused, others find room; the operator, whom nobody names, is
// bounded by all alone. What is left is somebody else's.
func TestNobodyHasAllPlaces(t *testing.T) {
	p := NewPlaces(5, "too-many", "Too many", "things", whoOf)
	var leaves []func()
	enter := func(who string, want int) {
		t.Helper()
		leave, err := p.Enter(as(who))
		if statusOf(err) != want {
			t.Errorf("%q: %v, want %d", who, err, want)
		}
		if err == nil {
			leaves = append(leaves, leave)
		}
	}
	for range 3 {
		enter("mallory", 0)
	}
	enter("mallory", http.StatusTooManyRequests)
	enter("alice", 0)
	enter("", 0)
	enter("bob", http.StatusServiceUnavailable)
	enter("", http.StatusServiceUnavailable)
	leaves[0]()
	enter("mallory", 0)
	for _, leave := range leaves[1:] {
		leave()
	}
	if p.Taken() != 0 || len(p.of) != 0 {
		t.Errorf("%d places are taken by %v", p.Taken(), p.of)
	}
}

// TestBytesOfBodies: whoever has much on its way is refused more, until it has come; others are not.
func TestBytesOfBodies(t *testing.T) {
	h := newHeld(whoOf)
	var bodies []*share
	grow := func(who string, mib, want int) {
		t.Helper()
		s := h.shareOf(as(who))
		if err := s.grow(mib << 20); statusOf(err) != want {
			t.Errorf("%q: %v, want %d", who, err, want)
		}
		bodies = append(bodies, s)
	}
	grow("mallory", 64, 0)
	grow("mallory", 1, http.StatusTooManyRequests)
	grow("alice", 64, 0)
	grow("", 128, 0)
	grow("bob", 1, http.StatusServiceUnavailable)
	bodies[0].release()
	grow("mallory", 64, 0)
	for _, s := range bodies {
		s.release()
		s.release()
	}
	if h.all != 0 || len(h.of) != 0 {
		t.Errorf("%d bytes are held, by %v", h.all, h.of)
	}
}

// TestLargeBodiesAreCounted: a body is counted while it comes, a small one is not, and nothing stays counted.
func TestLargeBodiesAreCounted(t *testing.T) {
	b := NewBodies(1<<20, 1<<20, time.Minute, NewPlaces(1, "slow", "Slow", "bodies", whoOf))
	b.held.of["alice"], b.held.all = maxHeldEach, maxHeldEach
	read := func(who string, n int) int {
		r := httptest.NewRequestWithContext(as(who), "POST", "/", strings.NewReader(strings.Repeat("x", n)))
		body, err := b.Read(httptest.NewRecorder(), r)
		if err == nil && len(body) != n {
			t.Errorf("%d bytes of %d", len(body), n)
		}
		return statusOf(err)
	}
	for _, c := range []struct {
		who     string
		n, want int
	}{
		{"alice", promisedBytes, 0},
		{"alice", 4 * promisedBytes, http.StatusTooManyRequests},
		{"bob", 1 << 20, 0},
		{"", 1 << 20, 0},
	} {
		if got := read(c.who, c.n); got != c.want {
			t.Errorf("%d bytes of %q: %d, want %d", c.n, c.who, got, c.want)
		}
	}
	if b.held.all != maxHeldEach || len(b.held.of) != 1 {
		t.Errorf("%d bytes are held, by %v", b.held.all, b.held.of)
	}
}

// TestHeldBodiesAreCounted until they are released, which may be so again.
func TestHeldBodiesAreCounted(t *testing.T) {
	b := NewBodies(1<<20, 1<<20, time.Minute, NewPlaces(1, "slow", "Slow", "bodies", whoOf))
	r := httptest.NewRequestWithContext(as("alice"), "POST", "/", strings.NewReader(strings.Repeat("x", 1<<20)))
	body, release, err := b.ReadHeld(httptest.NewRecorder(), r)
	if err != nil || len(body) != 1<<20 || b.held.of["alice"] < len(body)-2*promisedBytes {
		t.Errorf("%d bytes, %v; %d are held", len(body), err, b.held.of["alice"])
	}
	release()
	release()
	if b.held.all != 0 || len(b.held.of) != 0 {
		t.Errorf("%d bytes are held, by %v", b.held.all, b.held.of)
	}
}

// remote is a connection from an address.
type remote struct {
	net.Conn
	at net.Addr
}

func (r *remote) RemoteAddr() net.Addr { return r.at }

// TestConnectionsOfOneAddress: one address has half of the connections, and gets room again once some have ended; other
// addresses and loopback are not touched.
func TestConnectionsOfOneAddress(t *testing.T) {
	c := newConns(100)
	c.from.most = 4
	open := func(host string) (conn *remote, stays bool) {
		conn = &remote{at: &net.TCPAddr{IP: net.ParseIP(host), Port: 1000}}
		for _, gone := range c.trackState(conn, http.StateNew) {
			if gone == conn {
				return conn, false
			}
		}
		return conn, true
	}
	first, _ := open("2001:db8::1")
	for i, want := range []bool{true, false} {
		if conn, stays := open(fmt.Sprintf("2001:db8::%d", i+2)); stays != want {
			t.Errorf("connection %d of the network stays: %t", i+2, stays)
		} else if !stays {
			c.trackState(conn, http.StateClosed)
		}
	}
	for _, host := range []string{"192.0.2.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"} {
		if _, stays := open(host); !stays {
			t.Errorf("%s is closed", host)
		}
	}
	c.trackState(first, http.StateClosed)
	if _, stays := open("2001:db8::9"); !stays {
		t.Error("no room after one has ended")
	}
	if len(c.from.of) != 2 {
		t.Errorf("%v", c.from.of)
	}
}

// TestLinesAreCounted: what a body of lines holds is its sender's: the buffer from the beginning, a long line as it
// grows, and what waits of it; with the body all of it goes.
func TestLinesAreCounted(t *testing.T) {
	b := NewBodies(1<<20, 4<<20, time.Minute, NewPlaces(1, "slow", "Slow", "bodies", whoOf))
	begin := func(who, text string) (*Lines, error) {
		r := httptest.NewRequestWithContext(as(who), "POST", "/", strings.NewReader(text))
		return b.Lines(httptest.NewRecorder(), r)
	}
	long := strings.Repeat("x", 600<<10)
	l, err := begin("alice", "short\n"+long+"\n"+long+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := l.Next(); err != nil || string(text) != "short" || b.held.of["alice"] != lineBuffer {
		t.Errorf("%q, %v; %d bytes are held", text, err, b.held.of["alice"])
	}
	if text, err := l.Next(); err != nil || string(text) != long || b.held.of["alice"] < len(long) {
		t.Errorf("%d bytes, %v; %d bytes are held", len(text), err, b.held.of["alice"])
	}
	before := b.held.of["alice"]
	if err = l.Hold(1000); err != nil || b.held.of["alice"] != before+1000 {
		t.Errorf("%v; %d bytes are held, before %d", err, b.held.of["alice"], before)
	}
	if over := l.Take(maxHeldEach); !over || statusOf(l.Hold(1)) != http.StatusTooManyRequests {
		t.Errorf("over: %t", over)
	}
	if _, err = begin("alice", "more"); statusOf(err) != http.StatusTooManyRequests {
		t.Errorf("another body of the sender: %v", err)
	}
	other, err := begin("bob", "{}")
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	l.Drop(maxHeldEach)
	if text, err := l.Next(); err != nil || string(text) != long { // into what is held already
		t.Errorf("%d bytes, %v", len(text), err)
	}
	l.Close()
	if b.held.all != 0 || len(b.held.of) != 0 {
		t.Errorf("%d bytes are held, by %v", b.held.all, b.held.of)
	}
}

// TestLongLineBeyondTheShare: a line that may not grow ends the body.
func TestLongLineBeyondTheShare(t *testing.T) {
	b := NewBodies(1<<20, 4<<20, time.Minute, NewPlaces(1, "slow", "Slow", "bodies", whoOf))
	b.held.of["alice"], b.held.all = maxHeldEach-2*lineBuffer, maxHeldEach-2*lineBuffer
	text := strings.Repeat("x", 600<<10) + "\nshort\n"
	l, err := b.Lines(httptest.NewRecorder(), httptest.NewRequestWithContext(as("alice"), "POST", "/", strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.Next(); statusOf(err) != http.StatusTooManyRequests || !l.Failed() {
		t.Errorf("%v; failed: %t", err, l.Failed())
	}
	l.Close()
	if b.held.all != maxHeldEach-2*lineBuffer {
		t.Errorf("%d bytes are held", b.held.all)
	}
}
