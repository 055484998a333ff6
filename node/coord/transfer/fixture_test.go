package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
)

func TestMain(m *testing.M) {
	// The encoder and the decoder are shared, with channels that no bubble of synctest may own.
	if err := decompress(make([]byte, leastCompressed), compress(nil, make([]byte, leastCompressed))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var (
	ours   = command.AttemptRef{Job: command.JobID{Site: "a", Num: 7}, Task: 3, Attempt: 1, Token: 40}
	theirs = command.AttemptRef{Job: command.JobID{Site: "a", Num: 8}, Task: 0, Attempt: 2, Token: 41}
)

// held is what a site has, by hash; the attempt ours entitles site b to it.
type held struct {
	mu    sync.Mutex
	blobs map[[sha256.Size]byte][]byte
	asked map[int64]int // how often a part at an offset was asked for
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func hold(blobs ...[]byte) *held {
	h := &held{blobs: map[[sha256.Size]byte][]byte{}, asked: map[int64]int{}}
	for _, b := range blobs {
		h.blobs[sha256.Sum256(b)] = b
	}
	return h
}

func (h *held) answer(ctx context.Context, from string, q Request) (Source, Refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[q.Offset]++
	b, ok := h.blobs[q.Hash]
	switch {
	case from != "b" || q.Attempt != ours:
		return nil, NotAllowed
	case !ok:
		return nil, NotHere
	case q.Index > 100:
		<-ctx.Done()
		return nil, Behind
	}
	return memory{bytes.NewReader(b)}, Granted
}

func nameOf(b []byte) Blob {
	return Blob{Attempt: ours, What: Input, Hash: sha256.Sum256(b), Size: int64(len(b))}
}

// content returns n bytes: text, or what cannot be compressed.
func content(seed uint64, n int, text bool) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(b)
	for at := 0; text && at+8 < n; {
		x := binary.LittleEndian.Uint64(b[at:])
		line := fmt.Sprintf("2026-11-28T12:%02d:01Z site-%d task %d has ended, exit=%d took=%d.%03ds\n", x%60, x>>8%9, x>>16%1e6,
			x>>40&3, x>>48%100, x>>52%1000)
		at += copy(b[at:], line)
	}
	return b
}

// sink is a blob in memory.
type sink struct {
	mu      sync.Mutex
	b       []byte
	piece   int64
	missing map[int]bool
	twice   int   // pieces that came though they were there
	err     error // of WritePiece
}

func newSink(size int, piece int64) *sink {
	s := &sink{b: make([]byte, size), piece: piece, missing: map[int]bool{}}
	for i := range (int64(size) + piece - 1) / piece {
		s.missing[int(i)] = true
	}
	return s
}

func (s *sink) Size() int64 { return int64(len(s.b)) }

func (s *sink) Missing() (out []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.missing {
		out = append(out, i)
	}
	return out
}

func (s *sink) WritePiece(i int, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if !s.missing[i] {
		s.twice++
	}
	delete(s.missing, i)
	if at := int64(i) * s.piece; copy(s.b[at:], b) != len(b) || int64(len(b)) != min(s.piece, s.Size()-at) {
		return fmt.Errorf("piece %d has %d bytes", i, len(b))
	}
	return nil
}

// piped returns a client of site b whose connections a server answers, and what waits for them to end.
func piped(t testing.TB, serve func(net.Conn)) (c *Client, wait func()) {
	t.Helper()
	var wg sync.WaitGroup
	c = NewClient(func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		wg.Go(func() {
			defer server.Close()
			serve(server)
		})
		return client, nil
	})
	return c, func() { c.Close(); wg.Wait() }
}

func serveAs(ctx context.Context, s *Server, site string) func(net.Conn) {
	return func(conn net.Conn) { s.Serve(ctx, conn, relay.Preamble{Site: site}) }
}

var group = [16]byte{1}

type roster map[identity.Public]string

func (r roster) Find(key identity.Public) relay.Standing { return relay.Standing{Site: r[key]} }

func (r roster) Key(site string) (identity.Public, bool) {
	for k, s := range r {
		if s == site {
			return k, true
		}
	}
	return identity.Public{}, false
}

// secured is site a's peer port on loopback, and site b that dials it, by mutual TLS.
type secured struct {
	addr string
	b    *relay.Dialer
}

func (s *secured) dial(ctx context.Context, site, addr string) (net.Conn, error) {
	return s.b.Dial(ctx, relay.Peer{Site: site, Addr: addr}, relay.KindFiles, group)
}

func newSecured(t testing.TB, serve func(net.Conn, relay.Preamble)) *secured {
	t.Helper()
	known, networks := roster{}, map[string]*relay.Network{}
	for _, site := range []string{"a", "b"} {
		key := identity.Generate()
		known[key.Public()] = site
		own, err := relay.NewIdentity(key, known)
		if err != nil {
			t.Fatal(err)
		}
		networks[site] = &relay.Network{Identity: own}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := relay.NewMux(ln, "a", 5*time.Second, zerolog.Nop(), networks["a"])
	mux.Handle(relay.KindFiles, serve)
	mux.SetGroup(group)
	mux.Serve()
	t.Cleanup(mux.Close)
	return &secured{addr: ln.Addr().String(), b: &relay.Dialer{Net: networks["b"], Site: "b"}}
}

var errNoDisk = errors.New("no space left on device")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openFile is a blob in a file.
type openFile struct {
	*os.File
	size int64
}

func (f openFile) Size() int64 { return f.size }
