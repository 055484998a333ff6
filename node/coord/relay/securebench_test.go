package relay

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/identity"
)

// benchPeers are two members over loopback: what it takes b to reach a.
type benchPeers struct {
	dialer *Dialer
	to     Peer
}

func newBenchPeers(b *testing.B) benchPeers {
	b.Helper()
	r, keys := newRoster(), map[string]identity.Key{}
	for _, site := range []string{"a", "b"} {
		keys[site] = identity.Generate()
		r.set(keys[site], Standing{Site: site, Elector: true})
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	of := func(site string) *Network {
		own, err := NewIdentity(keys[site], r)
		if err != nil {
			b.Fatal(err)
		}
		return &Network{Identity: own}
	}
	mux := NewMux(ln, "a", 2*time.Second, zerolog.Nop(), of("a"))
	mux.Handle(KindForward, func(conn net.Conn, _ Preamble) {
		go func() {
			_, _ = conn.Read(make([]byte, 1)) // until the other end closes it
			_ = conn.Close()
		}()
	})
	mux.SetGroup([16]byte{1})
	mux.Serve()
	b.Cleanup(mux.Close)
	return benchPeers{&Dialer{Net: of("b"), Site: "b"}, Peer{Site: "a", Addr: ln.Addr().String()}}
}

func (p benchPeers) dial(b *testing.B) net.Conn {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	conn, err := p.dialer.Dial(ctx, p.to, KindForward, [16]byte{1})
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// BenchmarkHandshake is a connection between members, both ends' work in it: mutual TLS, preamble and answer.
func BenchmarkHandshake(b *testing.B) {
	p := newBenchPeers(b)
	for b.Loop() {
		_ = p.dial(b).Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
}

// BenchmarkConnections is what idle connections between members take of the heap and of stacks, both ends together.
func BenchmarkConnections(b *testing.B) {
	const each = 4 // a site's connections are bounded
	p := newBenchPeers(b)
	for b.Loop() {
		before := memoryInUse()
		var conns []net.Conn
		for range each {
			conns = append(conns, p.dial(b))
		}
		b.ReportMetric(float64(memoryInUse()-before)/each, "B/conn")
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
