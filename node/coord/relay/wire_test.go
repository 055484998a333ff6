package relay

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHeaderRoundTrip(t *testing.T) {
	h := Header{Term: 7, calls: []call{{origin: 1 << 63, seq: 3, commands: 2}, {origin: 5, seq: 1 << 40, commands: 0}}}
	var got Header
	if err := ParseHeader(h.Append(nil), &got); err != nil || got.Term != 7 || len(got.calls) != 2 ||
		got.calls[1] != h.calls[1] || got.calls[0] != h.calls[0] {
		t.Errorf("%+v, %v", got, err)
	}
	if err := ParseHeader(nil, &got); err == nil {
		t.Error("an entry without a header")
	}
}

func FuzzHeader(f *testing.F) {
	h := Header{Term: 7, calls: []call{{origin: 9, seq: 3, commands: 2}}}
	f.Add(h.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		if ParseHeader(b, &h) == nil {
			var again Header
			if err := ParseHeader(h.Append(nil), &again); err != nil || again.Term != h.Term ||
				len(again.calls) != len(h.calls) {
				t.Errorf("%+v became %+v, %v", h, again, err)
			}
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(appendCalls(nil, 1, []*proposal{{seq: 2, cmds: [][]byte{{1, 7}, {0}}}}, nil))
	f.Add(appendDone(nil, []doneCall{{1, Refused, 0}, {2, Ordered, 9}}))
	f.Add(appendAnswer(nil, 3, answer{answerRefused, 4, 2, "no"}))
	f.Add(appendQuestion(nil, leaderQuestion{kind: frameRemove, id: 1, site: "a"}))
	f.Add(appendQuestion(nil, leaderQuestion{kind: frameRenew, id: 1, incarnation: 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		if it, err := parseCalls(b[1:], "a"); err == nil {
			commands := 0
			for _, c := range it.calls {
				commands += c.commands
			}
			if len(it.cmds) != it.commands || commands != it.commands || it.bytes > len(b) ||
				!bytes.Equal(bytes.Join(it.cmds, nil), it.signed.Signed) {
				t.Errorf("calls %+v of %d bytes", it.calls, len(b))
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
	f.Add(Preamble{Kind: KindJoin, Group: [16]byte{1}, Site: "a"}.Encode())
	f.Add(Preamble{Kind: KindRaft, Group: [16]byte{1}, Site: "a", Means: "b"}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadPreamble(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again := p.Encode(); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x was read as %x", b, again)
		}
	})
}

// said is a connection on which these bytes have come, and what is written goes nowhere.
type said struct {
	net.Conn
	r *bytes.Reader
}

// Read implements net.Conn.
func (c *said) Read(b []byte) (int, error) { return c.r.Read(b) }

// Write implements net.Conn.
func (c *said) Write(b []byte) (int, error) { return len(b), nil }

// SetDeadline implements net.Conn.
func (c *said) SetDeadline(time.Time) error { return nil }

// Whatever comes first is told apart without a byte of it being lost, and no answer to a dialer makes it greet.
func FuzzSniff(f *testing.F) {
	for _, text := range []string{"GET / HTTP/1.1\r\n", "\x16\x03\x01\x00\x05hello", "CSHR\x04\x01", "\x03\x04port", "x"} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, secured bool) {
		conn, err := sniff(&said{r: bytes.NewReader(b)}, secured)
		if err == nil {
			if again, err := io.ReadAll(conn); err != nil || !bytes.Equal(again, b) {
				t.Errorf("%q was read as %q, %v", b, again, err)
			}
		}
		answer := &keptFirst{first: b[:min(len(b), maxKept)]}
		if answer.explain(tls.RecordHeaderError{}, Peer{Site: "a", Addr: "x:1"}) == nil {
			t.Errorf("%q in place of TLS is no error", b)
		}
	})
}

// A frame's length is a promise of the other side: memory grows with what
// arrives.
func TestFramePromise(t *testing.T) {
	b := binary.BigEndian.AppendUint32(nil, MaxFrame)
	buf, err := ReadFrame(bytes.NewReader(append(b, 1, 2, 3)), nil, MaxFrame)
	if err == nil || cap(buf) > 1<<20 {
		t.Errorf("%d bytes for 3, %v", cap(buf), err)
	}
}
