package raftlog

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// lines collects log lines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func TestGarbageOnThePeerPort(t *testing.T) {
	c := newCluster(t)
	out := &lines{}
	cfg := c.config("a", coordtest.NewMachine())
	cfg.Logger = zerolog.New(out)
	a, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ours := relay.Preamble{Kind: relay.KindForward, Group: c.fed, Site: "x", Means: "a"}
	foreign := relay.Preamble{Kind: relay.KindRaft, Group: [16]byte{9}, Site: "x"}
	huge := append(ours.Encode(), 0xff, 0xff, 0xff, 0xff)
	badFrame := append(ours.Encode(), relay.EndFrame(append(relay.Frame(nil), 99))...)
	foreignCommand := command.Append(nil, command.Command{ID: command.ID{Site: "victim"}, Body: &command.Forget{Site: "victim"}})
	raftGarbage := append(relay.Preamble{Kind: relay.KindRaft, Group: c.fed, Site: "x", Means: "a"}.Encode(),
		bytes.Repeat([]byte{0xde}, 100)...)
	for name, b := range map[string][]byte{
		"http":            []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"tls":             {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"zeros":           make([]byte, 100),
		"foreign":         foreign.Encode(),
		"version":         append([]byte("CSHR\x63"), make([]byte, 30)...),
		"kind":            append([]byte("CSHR\x01\x09"), make([]byte, 30)...),
		"feed":            relay.Preamble{Kind: relay.KindFeed, Group: c.fed, Site: "x"}.Encode(), // another backend's
		"huge frame":      huge,
		"unknown frame":   badFrame,
		"raft garbage":    raftGarbage,
		"join garbage":    append(relay.Preamble{Kind: relay.KindJoin}.Encode(), relay.EndFrame(append(relay.Frame(nil), "{]"...))...),
		"truncated calls": append(ours.Encode(), relay.EndFrame(append(relay.Frame(nil), 1, 1, 2))...),
		"empty frame":     append(ours.Encode(), relay.EndFrame(relay.Frame(nil))...),
		"no calls":        append(ours.Encode(), relay.EndFrame(append(relay.Frame(nil), rawCalls(0)...))...),
		"no commands":     append(ours.Encode(), relay.EndFrame(append(relay.Frame(nil), rawCalls(1, 7, 0)...))...),
		"empty command":   append(ours.Encode(), relay.EndFrame(append(relay.Frame(nil), rawCalls(1, 7, 1, 0)...))...),
	} {
		conn, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
		if _, err := conn.Write(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := io.ReadAll(conn)
		// Who takes it for another port is told so, and no more.
		told := name == "http" && bytes.HasPrefix(got, []byte("HTTP/1.1 400 ")) || name == "tls" && len(got) == 5
		if len(got) != 0 && string(got) != welcome && !told {
			t.Errorf("%s: answered with %q, %v", name, got, err)
		}
		_ = conn.Close()
	}
	if n := out.count("peer connection closed"); n != 1 {
		t.Errorf("%d log lines about it within %v, not one", n, relay.LogEvery)
	}
	// A member that speaks the protocol and proposes for another site, or what
	// nobody can decode, is told so, and nothing enters the log.
	before := a.machine.index.Load()
	for _, cmd := range [][]byte{foreignCommand, append([]byte{11}, "undecodable"...)} {
		if o := forwardRaw(t, a, cmd); o != rejectedOnWire {
			t.Errorf("%q was answered with %d", cmd, o)
		}
	}
	register(t, a)
	if err := a.Err(); err != nil || a.machine.index.Load() <= before {
		t.Errorf("the member does not go on: %v", err)
	}
}

// welcome is what a preamble of the federation is answered with at site a.
const welcome = "\x01\x01a"

// greet opens a forward connection as site x.
func greet(t *testing.T, a *Log) net.Conn {
	t.Helper()
	d := relay.Dialer{Net: &relay.Network{}, Site: "x"}
	conn, err := d.Dial(patience(t), relay.Peer{Site: a.cfg.Site, Addr: a.Addr()}, relay.KindForward, a.line.id)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
	return conn
}

// exchange sends the body of a frame and returns that of the answer.
func exchange(t *testing.T, conn net.Conn, body []byte) []byte {
	t.Helper()
	if _, err := conn.Write(relay.EndFrame(append(relay.Frame(nil), body...))); err != nil {
		t.Fatal(err)
	}
	b, err := relay.ReadFrame(conn, nil, relay.MaxFrame)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rejectedOnWire is the outcome of a call that the leader never orders.
const rejectedOnWire = 3

// rawCalls is the front of a frame of calls that are not signed, up to their commands.
func rawCalls(counts ...byte) []byte {
	return slices.Concat([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 64), counts)
}

// forwardRaw sends one call as site x, number 7 of origin 1.
func forwardRaw(t *testing.T, a *Log, cmd []byte) byte {
	t.Helper()
	conn := greet(t, a)
	defer conn.Close()
	b := exchange(t, conn, slices.Concat(rawCalls(1, 7, 1), cmd))
	if len(b) != 5 || b[0] != 4 || b[1] != 1 || b[2] != 7 {
		t.Fatalf("answer %x", b)
	}
	return b[3]
}

// A connection that says nothing is closed, and many of them do not lock
// members out.
func TestSilentConnections(t *testing.T) {
	c := newCluster(t)
	c.time.handshake = 50 * time.Millisecond
	a := c.open(t, "a")
	var conns []net.Conn
	for range 3 * 64 {
		conn, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(coordtest.Patience))
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Fatal("an answer to nothing")
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a silent connection stays open")
		}
	}
	c.open(t, "b")
}
