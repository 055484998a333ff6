package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// answering reads requests, and has each answered by bytes; then it ends the connection.
func answering(answers ...[]byte) func(net.Conn) {
	return func(conn net.Conn) {
		for _, a := range answers {
			if _, err := relay.ReadFrame(conn, nil, maxRequest); err != nil {
				return
			}
			if _, err := conn.Write(a); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, conn)
	}
}

func frameOf(code byte, body []byte) []byte {
	return relay.EndFrame(append(append(relay.Frame(nil), code), body...))
}

// A peer that sends what is no answer ends a pull with an error that says so; nothing of it is kept.
func TestHostilePeers(t *testing.T) {
	b := content(1, 1000, true)
	shrunk := compress(nil, b)
	for name, answer := range map[string][]byte{
		"garbage":          []byte("HTTP/1.1 200 OK\r\n\r\n"),
		"less":             frameOf(codeRaw, b[1:]),
		"more":             frameOf(codeRaw, append(bytes.Clone(b), 0)),
		"nothing":          frameOf(codeRaw, nil),
		"another frame":    append(frameOf(codeRaw, b), frameOf(codeRaw, b)...),
		"a length of 4 GB": {0xff, 0xff, 0xff, 0xff, codeRaw},
		"a length of zero": {0, 0, 0, 0, codeRaw},
		"unknown code":     frameOf(9, b),
		"refusal 0":        frameOf(codeRefused, []byte{0}),
		"a long refusal":   frameOf(codeRefused, []byte{1, 1}),
		"a bomb":           frameOf(codeZstd, compress(nil, make([]byte, 64<<20))[:900]),
		"a whole bomb":     frameOf(codeZstd, compress(nil, make([]byte, 1<<20))),
		"a window of GiB":  frameOf(codeZstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 1, 0, 0}),
		"shrunk, less":     frameOf(codeZstd, compress(nil, b[:900])),
		"shrunk, broken":   frameOf(codeZstd, append(shrunk[:len(shrunk)-3:len(shrunk)-3], 1, 2, 3)),
		"shrunk, longer":   frameOf(codeZstd, make([]byte, 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			c, wait := piped(t, answering(answer))
			to := newSink(len(b), PieceBytes)
			err := c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), to)
			if !errors.Is(err, ErrPeer) || len(c.peers) > 0 {
				t.Errorf("%v; %d peers kept", err, len(c.peers))
			}
			if len(to.missing) == 0 && name != "another frame" {
				t.Error("a piece was kept")
			}
			wait()
		})
	}
}

// A peer that closes before an answer, or within one, is out of reach; what came before stays.
func TestPeerGoes(t *testing.T) {
	b := content(1, 3000, false)
	for _, answers := range [][][]byte{{}, {frameOf(codeRaw, b[:1000])[:700]}} {
		dials := 0
		c := NewClient(func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			dials++
			go func() {
				defer server.Close()
				for _, a := range answers {
					_, _ = relay.ReadFrame(server, nil, maxRequest)
					_, _ = server.Write(a)
				}
			}()
			return client, nil
		})
		err := c.PullBatch(t.Context(), "a", "x:1", 7, []Blob{nameOf(b[:1000])}, func(int, []byte, error) error {
			t.Error("something came")
			return nil
		})
		if !errors.Is(err, ErrUnreachable) || dials != 1 {
			t.Errorf("%v, %d dials", err, dials)
		}
		c.Close()
	}
}

// A peer that says nothing, or trickles, is given up after two minutes, by an error that says so; one that is slow, but
// not as slow, is not.
func TestStalledPeer(t *testing.T) {
	b := content(1, PieceBytes, false)
	for name, test := range map[string]struct {
		every time.Duration // for a chunk
		stall bool
	}{
		"nothing":    {time.Hour, true},
		"a trickle":  {5 * time.Second, true},          // 51 KiB/s
		"a slow one": {3800 * time.Millisecond, false}, // 67 KiB/s
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{Answer: func(context.Context, string, Request) (Source, Refusal) {
					return slowSource{memory{bytes.NewReader(b)}, test.every}, Granted
				}}
				c, wait := piped(t, serveAs(t.Context(), s, "b"))
				began := time.Now()
				err := c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), newSink(len(b), PieceBytes))
				took := time.Since(began)
				if errors.Is(err, ErrStalled) != test.stall || !test.stall && err != nil {
					t.Errorf("%v", err)
				}
				if test.stall && (took < stallAfter || took > stallAfter*5/4) {
					t.Errorf("after %s", took)
				}
				wait()
			})
		})
	}
	if !strings.Contains(ErrStalled.Error(), "less than 64 KiB/s for 2m0s") {
		t.Error(ErrStalled)
	}
}

// slowSource takes its time for each chunk.
type slowSource struct {
	Source
	every time.Duration
}

func (s slowSource) ReadAt(b []byte, at int64) (int, error) {
	<-time.After(s.every)
	return s.Source.ReadAt(b, at)
}

// A slow disk here, and a wait for a link that another pull uses, are no fault of the peer.
func TestSlowDiskIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := content(1, 100, false)
		c, wait := piped(t, serveAs(t.Context(), &Server{Answer: hold(b).answer}, "b"))
		var ends []chan error
		for range parallel + 1 {
			end := make(chan error, 1)
			ends = append(ends, end)
			go func() {
				end <- c.PullBatch(t.Context(), "a", "x:1", 7, []Blob{nameOf(b)}, func(int, []byte, error) error {
					<-time.After(10 * time.Minute)
					return nil
				})
			}()
		}
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		wait()
	})
}

// Peers that say nothing do not keep others out: beyond half of all links none is a peer's second.
func TestStallingPeersKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := content(1, 100*1000, false)
		s := &Server{Answer: hold(b).answer}
		c := NewClient(func(_ context.Context, site, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				if site == "a" {
					s.Serve(t.Context(), server, relay.Preamble{Site: "b"})
				}
				_, _ = io.Copy(io.Discard, server)
			}()
			return client, nil
		})
		defer c.Close()
		c.piece = 1000
		var ends []chan error
		for i := range maxLinks/2 - 1 {
			end := make(chan error, 1)
			ends = append(ends, end)
			go func() {
				end <- c.Pull(t.Context(), string(rune('b'+i)), "x:1", 7, nameOf(b), newSink(len(b), c.piece))
			}()
		}
		synctest.Wait()
		if n := len(c.links); n <= maxLinks/2 || n >= maxLinks {
			t.Errorf("%d links are used", n)
		}
		must(t, c.Pull(t.Context(), "a", "x:1", 7, nameOf(b), newSink(len(b), c.piece)))
		for _, end := range ends {
			if err := <-end; !errors.Is(err, ErrStalled) {
				t.Error(err)
			}
		}
	})
}
