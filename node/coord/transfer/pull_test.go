package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A blob of two pieces and one of none come whole, over mutual TLS; each piece is asked for once, and the
// connections are used again.
func TestBlobComesWhole(t *testing.T) {
	for _, text := range []bool{false, true} {
		big := content(1, PieceBytes+12345, text)
		h := hold(big, nil)
		s := &Server{Answer: h.answer}
		at := newSecured(t, func(conn net.Conn, p relay.Preamble) { s.Serve(t.Context(), conn, p) })
		var dials sync.Map
		c := NewClient(func(ctx context.Context, site, addr string) (net.Conn, error) {
			conn, err := at.dial(ctx, site, addr)
			dials.Store(conn, true)
			return conn, err
		})
		for round := range 2 {
			to := newSink(len(big), PieceBytes)
			must(t, c.Pull(t.Context(), "a", at.addr, 7, nameOf(big), to))
			if !bytes.Equal(to.b, big) || to.twice > 0 {
				t.Fatalf("text %t: other bytes, or %d pieces twice", text, to.twice)
			}
			if h.asked[PieceBytes] != round+1 {
				t.Errorf("the last piece was asked for %d times", h.asked[PieceBytes])
			}
		}
		n := 0
		dials.Range(func(any, any) bool { n++; return true })
		if n > parallel {
			t.Errorf("%d connections for two pulls", n)
		}
		must(t, c.Pull(t.Context(), "a", at.addr, 7, nameOf(nil), newSink(0, PieceBytes)))
		c.Close()
	}
}

// Many small blobs come with few requests; an empty one costs none, and one that is refused holds no other one up.
func TestBatch(t *testing.T) {
	var all [][]byte
	var blobs []Blob
	for i := range 1000 {
		b := content(uint64(i), i*7, i%2 == 0)
		all, blobs = append(all, b), append(blobs, nameOf(b))
	}
	h := hold(all...)
	delete(h.blobs, blobs[10].Hash)
	blobs[20].Attempt = theirs
	c, wait := piped(t, serveAs(t.Context(), &Server{Answer: h.answer}, "b"))
	defer wait()
	var requests atomic.Int32
	dial := c.dial
	c.dial = func(ctx context.Context, site, addr string) (net.Conn, error) {
		conn, err := dial(ctx, site, addr)
		return counting{conn, &requests}, err
	}
	var mu sync.Mutex
	got, refused := map[int][]byte{}, map[int]string{}
	must(t, c.PullBatch(t.Context(), "a", "x:1", 7, blobs, func(i int, b []byte, err error) error {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			refused[i] = err.Error()
			return nil
		}
		got[i] = bytes.Clone(b)
		return nil
	}))
	if n := requests.Load(); n > 1000/maxParts+2 {
		t.Errorf("%d requests for 1000 blobs", n)
	}
	for i, b := range all {
		if (i == 10 || i == 20) == bytes.Equal(got[i], b) {
			t.Fatalf("blob %d: %d bytes of %d, %s", i, len(got[i]), len(b), refused[i])
		}
	}
	want := map[int]string{
		10: fmt.Sprintf("blob %x is refused: it has no such blob", blobs[10].Hash),
		20: fmt.Sprintf("blob %x is refused: by its state this site may not read that", blobs[20].Hash),
	}
	if len(refused) != 2 || refused[10] != want[10] || refused[20] != want[20] {
		t.Errorf("%v", refused)
	}
}

// counting counts Writes.
type counting struct {
	net.Conn
	writes *atomic.Int32
}

func (c counting) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A request does not wait for the answer to the one before: far sites are pulled from without a pause for each piece.
func TestRequestsArePipelined(t *testing.T) {
	b := content(1, 8000, false)
	c, wait := piped(t, func(conn net.Conn) {
		var x parser
		for range 4 { // times two requests, both of which come before an answer
			var two []Request
			for range 2 {
				frame, err := relay.ReadFrame(conn, nil, maxRequest)
				if err != nil {
					t.Error(err)
					return
				}
				parts, err := x.parse(frame)
				if err != nil || len(parts) != 1 {
					t.Errorf("%d pieces, %v", len(parts), err)
					return
				}
				two = append(two, parts[0])
			}
			for _, q := range two {
				_, _ = conn.Write(frameOf(codeRaw, b[q.Offset:][:q.Length]))
			}
		}
	})
	c.links = make(chan struct{}, 1) // one connection
	c.piece = 1000
	to := newSink(len(b), c.piece)
	must(t, c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), to))
	if !bytes.Equal(to.b, b) {
		t.Error("other bytes")
	}
	wait()
}

// A refusal ends a pull and says why; a server whose Answer says nothing refuses; only some refusals are for a while.
func TestRefusals(t *testing.T) {
	b := content(1, 100, false)
	grants := hold(b)
	other := hold()
	wrongSize := nameOf(b)
	other.blobs[wrongSize.Hash] = b[1:]
	for name, test := range map[string]struct {
		answer func(context.Context, string, Request) (Source, Refusal)
		site   string
		index  uint64
		want   Refusal
		later  bool
	}{
		"another site":  {grants.answer, "c", 7, NotAllowed, false},
		"nothing said":  {func(context.Context, string, Request) (Source, Refusal) { return nil, Granted }, "b", 7, NotAllowed, false},
		"another size":  {other.answer, "b", 7, NotHere, false},
		"state too old": {grants.answer, "b", 101, Behind, true},
		"unknown":       {func(context.Context, string, Request) (Source, Refusal) { return nil, 99 }, "b", 7, 99, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, wait := piped(t, serveAs(t.Context(), &Server{Answer: test.answer}, test.site))
			err := c.Pull(t.Context(), "a", "x:1", test.index, nameOf(b), newSink(100, PieceBytes))
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Refusal != test.want || refused.Temporary() != test.later {
				t.Errorf("%s: %v", name, err)
			}
			wait()
		})
	}
}

// Errors tell whose fault it is.
func TestWhoseFault(t *testing.T) {
	b := content(1, 100, false)
	c, wait := piped(t, serveAs(t.Context(), &Server{Answer: hold(b).answer}, "b"))
	full := newSink(100, PieceBytes)
	full.err = errNoDisk
	if err := c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), full); !errors.Is(err, ErrSink) || !errors.Is(err, errNoDisk) {
		t.Errorf("full disk: %v", err)
	}
	if err := c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), newSink(99, PieceBytes)); !errors.Is(err, ErrSink) {
		t.Errorf("a place of another size: %v", err)
	}
	strange := newSink(100, PieceBytes)
	strange.missing[1] = true
	if err := c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), strange); !errors.Is(err, ErrSink) {
		t.Errorf("a piece that is none: %v", err)
	}
	wait()
	away := NewClient(func(context.Context, string, string) (net.Conn, error) { return nil, relay.ErrBanned })
	err := away.Pull(t.Context(), "a", "x:1", 7, nameOf(b), newSink(100, PieceBytes))
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, relay.ErrBanned) {
		t.Errorf("no connection: %v", err)
	}
	err = away.PullBatch(t.Context(), "a", "x:1", 7, []Blob{{Size: PieceBytes + 1}}, nil)
	if !errors.Is(err, ErrSink) {
		t.Errorf("a large blob in a batch: %v", err)
	}
	away.Close()
}

// What a disk cannot read is refused, in the middle of a part, too; the connection goes on.
func TestUnreadableSource(t *testing.T) {
	b := content(1, 3*chunkBytes, false)
	h := hold(b)
	answer := func(ctx context.Context, from string, q Request) (Source, Refusal) {
		s, refusal := h.answer(ctx, from, q)
		return torn{s, 2 * chunkBytes}, refusal
	}
	c, wait := piped(t, serveAs(t.Context(), &Server{Answer: answer}, "b"))
	defer wait()
	for range 2 {
		var refused *RefusedError
		err := c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), newSink(len(b), PieceBytes))
		if !errors.As(err, &refused) || refused.Refusal != Failed || !refused.Temporary() {
			t.Errorf("%v", err)
		}
	}
}

// torn cannot be read from a place on.
type torn struct {
	Source
	from int64
}

func (s torn) ReadAt(b []byte, at int64) (int, error) {
	if at >= s.from {
		return 0, errNoDisk
	}
	return s.Source.ReadAt(b, at)
}

// An ended context ends a pull at once, whatever it waits for: the dial, the peer, or a link that others use.
func TestCancellation(t *testing.T) {
	b := content(1, 100, false)
	reached := make(chan struct{}, 16)
	mute := func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1))
		reached <- struct{}{}
		_, _ = conn.Read(make([]byte, 1<<16))
		_, _ = conn.Read(make([]byte, 1))
	}
	c, wait := piped(t, mute)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range parallel + 2 {
		all.Go(func() {
			err := c.Pull(ctx, "a", "x:1", 7, nameOf(b), newSink(100, PieceBytes))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
	for range parallel {
		<-reached
	}
	cancel()
	all.Wait()
	if len(c.peers) > 0 || len(c.links) > 0 {
		t.Errorf("%d peers and %d links are left", len(c.peers), len(c.links))
	}
	wait()
	c = NewClient(func(ctx context.Context, _, _ string) (net.Conn, error) {
		reached <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	ctx, cancel = context.WithCancel(t.Context())
	all.Go(func() {
		err := c.Pull(ctx, "a", "x:1", 7, nameOf(b), newSink(100, PieceBytes))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	<-reached
	cancel()
	all.Wait()
	c.Close()
}

// A pull of much gives way to one of little from the same peer, and has all links again behind it.
func TestSmallPullIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big, small := content(1, 400*1000, false), content(2, 100, false)
		c, wait := piped(t, serveAs(t.Context(), &Server{Answer: hold(big, small).answer}, "b"))
		c.piece = 1000
		ended := make(chan error, 1)
		began := time.Now()
		go func() {
			ended <- c.Pull(t.Context(), "a", "x:1", 7, nameOf(big), slowSink{newSink(len(big), c.piece)})
		}()
		<-time.After(1500 * time.Millisecond)
		must(t, c.Pull(t.Context(), "a", "x:1", 7, nameOf(small), newSink(100, c.piece)))
		if took := time.Since(began); took > (turn+2)*time.Second {
			t.Errorf("the small one took %s", took)
		}
		must(t, <-ended)
		if took := time.Since(began); took > (400/parallel+turn)*time.Second {
			t.Errorf("the large one took %s", took)
		}
		wait()
	})
}

// slowSink keeps a piece a second on each link.
type slowSink struct{ *sink }

func (s slowSink) WritePiece(i int, b []byte) error {
	<-time.After(time.Second)
	return s.sink.WritePiece(i, b)
}
