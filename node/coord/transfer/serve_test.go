package transfer

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Askers that say nonsense, or nothing, are hung up on; Answer is not called.
func TestHostileAskers(t *testing.T) {
	part := func(change func(*Request)) []byte {
		p := Request{Blob: nameOf([]byte("x")), Index: 7, Length: 1}
		change(&p)
		return relay.EndFrame(appendRequest(relay.Frame(nil), 7, []Request{p}))
	}
	for name, request := range map[string][]byte{
		"garbage":        []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"a huge frame":   {0x7f, 0xff, 0xff, 0xff},
		"an empty frame": {0, 0, 0, 0},
		"no part":        {0, 0, 0, 2, 7, 0},
		"no length":      part(func(p *Request) { p.Length = 0 }),
		"behind the end": part(func(p *Request) { p.Offset = 1 }),
		"far behind":     part(func(p *Request) { p.Offset = -1 }),
		"a large piece":  part(func(p *Request) { p.Size, p.Length = 1<<30, PieceBytes+1 }),
		"a large blob":   part(func(p *Request) { p.Size = MaxBlobBytes + 1 }),
		"no site":        part(func(p *Request) { p.Attempt.Job.Site = "" }),
		"a site's path":  part(func(p *Request) { p.Attempt.Job.Site = "../a" }),
		"nothing":        nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{Answer: func(context.Context, string, Request) (Source, Refusal) {
					t.Error("Answer was called")
					return nil, NotAllowed
				}}
				client, server := net.Pipe()
				go func() { _, _ = client.Write(request) }()
				began := time.Now()
				s.Serve(t.Context(), server, relay.Preamble{Site: "b"})
				if time.Since(began) > idle {
					t.Error("it was waited for longer than silence may last")
				}
				_ = client.Close()
			})
		})
	}
}

// An asker that takes nothing is hung up on; a server that ends waits for nobody.
func TestAskerTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := content(1, 1000, false)
		ask := relay.EndFrame(appendRequest(relay.Frame(nil), 7, []Request{{Blob: nameOf(b), Length: 1000}}))
		for _, ends := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			client, server := net.Pipe()
			go func() {
				_, _ = client.Write(ask)
				if ends {
					cancel()
				}
			}()
			began := time.Now()
			(&Server{Answer: hold(b).answer}).Serve(ctx, server, relay.Preamble{Site: "b"})
			if took := time.Since(began); took > takeWithin || ends && took > 0 {
				t.Errorf("after %s", took)
			}
			_ = client.Close()
			cancel()
		}
	})
}

// Every source that was opened is closed, whatever becomes of it.
func TestSourcesAreClosed(t *testing.T) {
	b := content(1, 3*chunkBytes, false)
	var open atomic.Int32
	s := &Server{Answer: func(_ context.Context, _ string, q Request) (Source, Refusal) {
		open.Add(1)
		refusal := Granted
		if q.Offset == 1 {
			refusal = NotAllowed
		}
		return counted{memory{bytes.NewReader(b)}, &open}, refusal
	}}
	small := nameOf(b)
	small.Size = 5
	for _, q := range []Request{
		{Blob: nameOf(b), Length: int64(len(b))},
		{Blob: nameOf(b), Length: 1, Offset: 1},
		{Blob: small, Length: 1},
	} {
		client, server := net.Pipe()
		go func() {
			_, _ = client.Write(relay.EndFrame(appendRequest(relay.Frame(nil), 7, []Request{q, q})))
			_, _ = io.ReadFull(client, make([]byte, headBytes+1))
			_ = client.Close()
		}()
		s.Serve(t.Context(), server, relay.Preamble{Site: "b"})
		if open.Load() != 0 {
			t.Errorf("%d are open", open.Load())
		}
	}
}

type counted struct {
	Source
	open *atomic.Int32
}

func (c counted) Close() error {
	c.open.Add(-1)
	return nil
}

// A flood of requests that are refused is slowed down: 256 parts a second, behind the first 1024.
func TestFloodOfRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := content(1, 100, false)
		c, wait := piped(t, serveAs(t.Context(), &Server{Answer: hold().answer}, "b"))
		began := time.Now()
		blobs := slices.Repeat([]Blob{nameOf(b)}, parallel*(refusedBurst+10*refusedRate))
		must(t, c.PullBatch(t.Context(), "a", "x:1", 7, blobs, func(int, []byte, error) error { return nil }))
		if took := time.Since(began); took < 8*time.Second || took > 14*time.Second {
			t.Errorf("it took %s", took)
		}
		wait()
	})
}

// The limit holds for all connections together, and counts a small part as 4 KiB.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big, small := content(1, 4<<20, true), content(2, 10, false)
		c, wait := piped(t, serveAs(t.Context(), &Server{Answer: hold(big, small).answer, Limit: NewLimit(1 << 20)}, "b"))
		c.piece = 1 << 20
		began := time.Now()
		must(t, c.Pull(t.Context(), "a", "x:1", 7, nameOf(big), newSink(len(big), c.piece)))
		if took := time.Since(began); took < 3500*time.Millisecond || took > 4500*time.Millisecond {
			t.Errorf("4 MiB at 1 MiB/s take %s", took)
		}
		began = time.Now()
		must(t, c.PullBatch(t.Context(), "a", "x:1", 7, slices.Repeat([]Blob{nameOf(small)}, 1024),
			func(int, []byte, error) error { return nil }))
		if took := time.Since(began); took < 3500*time.Millisecond || took > 4500*time.Millisecond {
			t.Errorf("1024 small ones take %s", took)
		}
		wait()
	})
}

// A site that opens more connections than relay allows it loses its own.
func TestTooManyConnections(t *testing.T) {
	var open atomic.Int32
	b := content(1, 100, false)
	s := &Server{Answer: hold(b).answer}
	at := newSecured(t, func(conn net.Conn, p relay.Preamble) {
		open.Add(1)
		defer open.Add(-1)
		s.Serve(t.Context(), conn, p)
	})
	ask := relay.EndFrame(appendRequest(relay.Frame(nil), 7, []Request{{Blob: nameOf(b), Length: 100}}))
	for range 20 {
		conn, err := at.dial(t.Context(), "a", at.addr)
		must(t, err)
		defer conn.Close()
		_, err = conn.Write(ask)
		must(t, err)
		_, err = io.ReadFull(conn, make([]byte, headBytes+100))
		must(t, err)
		if n := open.Load(); n > 9 { // one may be about to end
			t.Errorf("%d are served", n)
		}
	}
}

// loop reads one request again and again, and drops what is written.
type loop struct {
	net.Conn
	request []byte
	left    int // requests
	at      int
}

func (l *loop) Read(b []byte) (int, error) {
	if l.at == len(l.request) {
		if l.left--; l.left <= 0 {
			return 0, io.EOF
		}
		l.at = 0
	}
	n := copy(b, l.request[l.at:])
	l.at += n
	return n, nil
}

func (*loop) Write(b []byte) (int, error) { return len(b), nil }

func (*loop) SetDeadline(time.Time) error      { return nil }
func (*loop) SetReadDeadline(time.Time) error  { return nil }
func (*loop) SetWriteDeadline(time.Time) error { return nil }
func (*loop) Close() error                     { return nil }

// A part costs no memory besides the pooled buffers, and a request only its deadline.
func TestAllocations(t *testing.T) {
	b := content(1, 2*chunkBytes, false)
	source := memory{bytes.NewReader(b)}
	s := &Server{Answer: func(context.Context, string, Request) (Source, Refusal) { return source, Granted }}
	parts := slices.Repeat([]Request{{Blob: nameOf(b), Length: int64(len(b))}}, 50)
	request := relay.EndFrame(appendRequest(relay.Frame(nil), 7, parts))
	serve := func(requests int) float64 {
		return testing.AllocsPerRun(3, func() {
			s.Serve(t.Context(), &loop{request: request, left: requests}, relay.Preamble{Site: "b"})
		})
	}
	if few, many := serve(1), serve(21); (many-few)/20 > 10 {
		t.Errorf("%.1f allocations a request of 50 parts", (many-few)/20)
	}
}
