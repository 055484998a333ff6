package raftlog

import (
	"bytes"
	"encoding/binary"
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

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
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
	ours := preamble{kind: kindForward, federation: c.fed, site: "x"}
	foreign := preamble{kind: kindRaft, federation: [16]byte{9}, site: "x"}
	huge := append(ours.encode(), 0xff, 0xff, 0xff, 0xff)
	badFrame := append(ours.encode(), endFrame(append(frame(nil), 99))...)
	foreignCommand := fsm.AppendCommand(nil, fsm.Command{ID: fsm.CommandID{Site: "victim"}, Body: &fsm.Forget{Site: "victim"}})
	raftGarbage := append(preamble{kind: kindRaft, federation: c.fed, site: "x"}.encode(), bytes.Repeat([]byte{0xde}, 100)...)
	for name, b := range map[string][]byte{
		"http":            []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"tls":             {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"zeros":           make([]byte, 100),
		"foreign":         foreign.encode(),
		"version":         append([]byte("CSHR\x63"), make([]byte, 30)...),
		"kind":            append([]byte("CSHR\x01\x09"), make([]byte, 30)...),
		"huge frame":      huge,
		"unknown frame":   badFrame,
		"raft garbage":    raftGarbage,
		"join garbage":    append(preamble{kind: kindJoin}.encode(), endFrame(append(frame(nil), "{]"...))...),
		"truncated calls": append(ours.encode(), endFrame(append(frame(nil), frameCalls, 1, 2))...),
	} {
		conn, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
		if _, err := conn.Write(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n, err := io.Copy(io.Discard, conn); n != 0 {
			t.Errorf("%s: answered with %d bytes, %v", name, n, err)
		}
		_ = conn.Close()
	}
	if n := out.count("peer connection closed"); n != 1 {
		t.Errorf("%d log lines about it within %v, not one", n, logEvery)
	}
	// A member that speaks the protocol and proposes for another site, or what
	// nobody can decode, is told so, and nothing enters the log.
	before := a.machine.index.Load()
	for _, cmd := range [][]byte{foreignCommand, []byte("undecodable"), nil} {
		if o := forwardRaw(t, a, cmd); o != rejected {
			t.Errorf("%q was answered with %d", cmd, o)
		}
	}
	register(t, a)
	if err := a.Err(); err != nil || a.machine.index.Load() <= before {
		t.Errorf("the member does not go on: %v", err)
	}
}

// forwardRaw sends one call as site x.
func forwardRaw(t *testing.T, a *Log, cmd []byte) outcome {
	t.Helper()
	d := &dialer{net: &network{}, site: "x"}
	conn, err := d.dial(patience(t), a.Addr(), kindForward, a.line.id)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(coordtest.Patience))
	p := &proposal{seq: 7, cmds: [][]byte{cmd}}
	if _, err := conn.Write(endFrame(appendCalls(frame(nil), 1, []*proposal{p}))); err != nil {
		t.Fatal(err)
	}
	b, err := readFrame(conn, nil, maxFrame)
	if err != nil || b[0] != frameDone {
		t.Fatalf("answer %x, %v", b, err)
	}
	all, err := parseDone(b[1:])
	if err != nil || len(all) != 1 || all[0].seq != 7 {
		t.Fatalf("answer %v, %v", all, err)
	}
	return all[0].outcome
}

// A connection that says nothing is closed, and many of them do not lock
// members out.
func TestSilentConnections(t *testing.T) {
	c := newCluster(t)
	c.time.handshake = 50 * time.Millisecond
	a := c.open(t, "a")
	var conns []net.Conn
	for range 3 * maxHandshakes {
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

func TestHeaderRoundTrip(t *testing.T) {
	h := header{term: 7, calls: []call{{origin: 1 << 63, seq: 3, commands: 2}, {origin: 5, seq: 1 << 40, commands: 0}}}
	var got header
	if err := parseHeader(h.append(nil), &got); err != nil || got.term != 7 || len(got.calls) != 2 || got.calls[1] != h.calls[1] || got.calls[0] != h.calls[0] {
		t.Errorf("%+v, %v", got, err)
	}
	if err := parseHeader(nil, &got); err == nil {
		t.Error("an entry without a header")
	}
}

func FuzzHeader(f *testing.F) {
	h := header{term: 7, calls: []call{{origin: 9, seq: 3, commands: 2}}}
	f.Add(h.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h header
		if parseHeader(b, &h) == nil {
			var again header
			if err := parseHeader(h.append(nil), &again); err != nil || again.term != h.term || len(again.calls) != len(h.calls) {
				t.Errorf("%+v became %+v, %v", h, again, err)
			}
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(appendCalls(nil, 1, []*proposal{{seq: 2, cmds: [][]byte{[]byte("x"), nil}}}))
	f.Add(appendDone(nil, []done{{1, refused, 0}, {2, ordered, 9}}))
	f.Add(appendAnswer(nil, 3, answer{answerRefused, 4, 2, "no"}))
	f.Add(appendQuestion(nil, ask{kind: frameRemove, id: 1, site: "a"}))
	f.Add(appendQuestion(nil, ask{kind: frameRenew, id: 1, incarnation: 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		if items, err := parseCalls(b[1:]); err == nil {
			for _, it := range items {
				if len(it.cmds) != it.commands || it.bytes > len(b) {
					t.Errorf("call %+v of %d bytes", it.call, len(b))
				}
			}
		}
		if all, err := parseDone(b[1:]); err == nil {
			if again, err := parseDone(appendDone(nil, all)[1:]); err != nil || !slices.Equal(again, all) {
				t.Errorf("%v became %v, %v", all, again, err)
			}
		}
		_, _, _ = parseAnswer(b[1:])
		if q, err := parseQuestion(b); err == nil {
			if again, err := parseQuestion(appendQuestion(nil, q)); err != nil || again != q {
				t.Errorf("%+v became %+v, %v", q, again, err)
			}
		}
	})
}

func FuzzPreamble(f *testing.F) {
	f.Add(preamble{kind: kindJoin, federation: [16]byte{1}, site: "a"}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := readPreamble(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again := p.encode(); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x was read as %x", b, again)
		}
	})
}

// A frame's length is a promise of the other side: memory grows with what
// arrives.
func TestFramePromise(t *testing.T) {
	b := binary.BigEndian.AppendUint32(nil, maxFrame)
	buf, err := readFrame(bytes.NewReader(append(b, 1, 2, 3)), nil, maxFrame)
	if err == nil || cap(buf) > 1<<20 {
		t.Errorf("%d bytes for 3, %v", cap(buf), err)
	}
}
