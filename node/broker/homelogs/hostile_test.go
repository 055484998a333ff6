package homelogs

import (
	"context"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// Whatever a site does, it harms its own outputs only, each of them a few times, and leaves nothing on the disk.
func TestHostileSites(t *testing.T) {
	endless := func(_ context.Context, _ string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
		return asklogs.Output{Attempt: r.Attempt, Token: 7, Streams: [2]io.ReadCloser{
			io.NopCloser(ones{}), io.NopCloser(ones{}),
		}}, asklogs.Granted
	}
	for name, serve := range map[string]func(net.Conn){
		"garbage":        func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad\r\n\r\n")); _ = conn.Close() },
		"hangs up":       func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<16)); _ = conn.Close() },
		"says nothing":   func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"trickles":       trickle,
		"more than most": func(conn net.Conn) { flood(conn) },
		"another attempt": honest(func(ctx context.Context, from string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
			o, why := give(ctx, from, r)
			o.Attempt++
			return o, why
		}),
		"another token": honest(func(ctx context.Context, from string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
			o, why := give(ctx, from, r)
			o.Token = math.MaxUint64
			return o, why
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){
					"site-2": serve, "site-3": honest(give),
				}}
				f.ran("site-2", 3)
				f.ran("site-3", 3)
				f.start()
				pass(12 * time.Hour)
				if got := f.Stats(); f.missingOf("site-2") != 3 || f.missingOf("site-3") > 0 || got.GivenUp != 3 ||
					got.Waiting > 0 || f.parts() > 0 {
					t.Errorf("%+v, %d parts", got, f.parts())
				}
				f.stop()
			})
		})
	}
	t.Run("endless", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &federation{t: t, dir: t.TempDir(), sites: map[string]func(net.Conn){"site-2": honest(endless)}}
			f.ran("site-2", 3)
			f.start()
			pass(time.Minute)
			if got := f.Stats(); got.Brought != 3 || got.Bytes != 3*2<<20 || f.store.Stats().Bytes > 7<<20 {
				t.Errorf("%+v: cut at the bound", got)
			}
			f.stop()
		})
	})
}

// ones never ends.
type ones struct{}

func (ones) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 1
	}
	return len(b), nil
}

// trickle sends a byte of an answer now and then.
func trickle(conn net.Conn) {
	defer conn.Close()
	_, _ = conn.Read(make([]byte, 1<<16))
	for {
		for _, b := range []byte{0, 0, 0, 3, 2, 0, 'x'} {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			<-time.After(5 * time.Second) // of the bubble
		}
	}
}

// flood sends more than was asked for.
func flood(conn net.Conn) {
	defer conn.Close()
	_, _ = conn.Read(make([]byte, 1<<16))
	piece := append([]byte{0, 0, 0x40, 2, 2, 0}, make([]byte, 0x4000)...)
	for {
		if _, err := conn.Write(piece); err != nil {
			return
		}
	}
}

// One attempt at which the answer breaks off each time does not keep the others.
func TestOneThatBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &federation{t: t, dir: t.TempDir()}
		f.sites = map[string]func(net.Conn){"site-2": func(conn net.Conn) {
			honest(func(ctx context.Context, from string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
				if r.Task == 42 {
					_ = conn.Close()
				}
				return give(ctx, from, r)
			})(conn)
		}}
		f.ran("site-2", 100)
		f.start()
		pass(time.Hour)
		if got := f.Stats(); f.missingOf("site-2") != 1 || got.GivenUp != 1 || got.Waiting > 0 || f.parts() > 0 {
			t.Errorf("%+v, %d parts", got, f.parts())
		}
		f.stop()
	})
}
