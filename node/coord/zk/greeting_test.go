package zk

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// greeting is what a server says first.
func greeting(session time.Duration) []byte {
	b := binary.BigEndian.AppendUint32(nil, 36)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(session.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, 7)
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 16)...)
}

func TestFrames(t *testing.T) {
	good := append(greeting(6*time.Second), binary.BigEndian.AppendUint32(nil, 16)...)
	good = append(good, make([]byte, 16)...)
	for size := 1; size <= len(good); size++ { // however it is cut
		var f frames
		for chunk := range slices.Chunk(good, size) {
			if err := f.pass(chunk); err != nil {
				t.Fatal(err)
			}
		}
		if f.session() != 6*time.Second || f.have != 0 {
			t.Fatalf("%+v gives %v", f, f.session())
		}
	}
	for name, bad := range map[string][]byte{
		"ssh": []byte("SSH-2.0-OpenSSH"), "http": []byte("HTTP/1.1 400"), "short greeting": {0, 0, 0, 4},
		"short frame": append(greeting(time.Second), 0, 0, 0, 15), "empty frame": append(greeting(time.Second), 0, 0, 0, 0),
	} {
		if err := new(frames).pass(bad); !errors.Is(err, errSpeech) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(greeting(time.Second), 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole, halves frames
		at := max(0, min(cut, len(b)))
		one := whole.pass(b)
		two := halves.pass(b[:at])
		if two == nil {
			two = halves.pass(b[at:])
		}
		if (one == nil) != (two == nil) || one == nil &&
			(whole.left != halves.left || whole.session() != halves.session()) {
			t.Errorf("whole %v %+v, cut at %d %v %+v", one, whole, at, two, halves)
		}
	})
}

// speaks is a server that says something to everybody and then nothing.
func speaks(t *testing.T, words []byte) Place {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(words)
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return Place{Servers: []string{ln.Addr().String()}, User: "u", Password: "p", Session: time.Second}
}

// TestWrongPort: what is no ZooKeeper server is named as such, and takes neither the
// memory that its first bytes promise nor the broker with it.
func TestWrongPort(t *testing.T) {
	for name, words := range map[string][]byte{
		"ssh": []byte("SSH-2.0-OpenSSH_9.2\r\n"), "frames without a header": append(greeting(time.Second), 0, 0, 0, 4, 1, 2, 3, 4),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		p := speaks(t, words)
		_, err := Inspect(ctx, p, 1, zerolog.Nop())
		cancel()
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), p.Servers[0]+": it is no ZooKeeper server") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestThrottled: a server that had no time has executed nothing, and is asked again.
func TestThrottled(t *testing.T) {
	if err := markLost(errors.New(codeThrottled)); !transient(err) {
		t.Errorf("%v is final", err)
	}
	for _, final := range []error{zk.ErrNoNode, zk.ErrAuthFailed, errors.New("unknown error: -125"), errors.New(codeSASL)} {
		if transient(markLost(final)) {
			t.Errorf("%v is asked again", final)
		}
	}
}

// TestSASLDemanded: a server that wants another kind of credentials is named as such.
func TestSASLDemanded(t *testing.T) {
	err := (&client{root: "/x"}).wrapError("read", tree.LeadPath, markLost(errors.New(codeSASL)))
	if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "/x/lead") || !strings.Contains(err.Error(), "SASL") {
		t.Error(err)
	}
}

// TestGreetsAndHangsUp: between rounds of servers that greet and hang up the library
// pauses.
func TestGreetsAndHangsUp(t *testing.T) {
	h := &hosts{servers: []string{"a:1", "b:1"}}
	pauses := 0
	for range 6 {
		if _, again := h.Next(); again {
			pauses++
		}
		h.Connected()
	}
	if pauses != 2 {
		t.Errorf("%d pauses in three rounds", pauses)
	}
}
