package raftlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Every connection between members starts with a fixed preamble:
//
//	"CSHR" · version · kind · 16 bytes federation · uint8 length · site of the dialer
//
// Whatever else arrives is closed.

// kind of a connection.
type kind byte

const (
	kindRaft    kind = 1 // raft's RPCs
	kindForward kind = 2 // calls to the lead
	kindJoin    kind = 3 // one question, one answer
)

const (
	protocolVersion = 2
	preambleFixed   = 4 + 1 + 1 + 16 + 1
	maxConns        = 2048 // accepted and open
	maxHandshakes   = 64   // of them, still without a preamble
	logEvery        = 10 * time.Second
)

var magic = [4]byte{'C', 'S', 'H', 'R'}

var errPreamble = errors.New("not a peer connection of this federation")

type preamble struct {
	kind       kind
	federation [16]byte
	site       string
}

func (p preamble) encode() []byte {
	dst := append(make([]byte, 0, preambleFixed+len(p.site)), magic[:]...)
	dst = append(dst, protocolVersion, byte(p.kind))
	dst = append(dst, p.federation[:]...)
	dst = append(dst, byte(len(p.site)))
	return append(dst, p.site...)
}

// readPreamble reads no byte more than the preamble, and checks all but the
// federation.
func readPreamble(r io.Reader) (preamble, error) {
	var b [preambleFixed]byte
	if _, err := io.ReadFull(r, b[:4]); err != nil {
		return preamble{}, fmt.Errorf("read preamble: %w", err)
	}
	if [4]byte(b[:4]) != magic {
		return preamble{}, fmt.Errorf("%w: starts with %q", errPreamble, b[:4])
	}
	if _, err := io.ReadFull(r, b[4:]); err != nil {
		return preamble{}, fmt.Errorf("read preamble: %w", err)
	}
	p := preamble{kind: kind(b[5]), federation: [16]byte(b[6:22])}
	if b[4] != protocolVersion {
		return p, fmt.Errorf("%w: protocol version %d, this broker speaks %d", errPreamble, b[4], protocolVersion)
	}
	if p.kind < kindRaft || p.kind > kindJoin || b[22] > 63 {
		return p, fmt.Errorf("%w: kind %d", errPreamble, p.kind)
	}
	site := make([]byte, b[22])
	if _, err := io.ReadFull(r, site); err != nil {
		return p, fmt.Errorf("read preamble: %w", err)
	}
	p.site = string(site)
	return p, nil
}

// network is how members reach each other; tests cut it.
type network struct {
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	accept func(conn net.Conn, site string) bool // false: close it
}

// mux is the one peer listener: it reads preambles and hands connections on.
type mux struct {
	ln        net.Listener
	handshake time.Duration
	log       zerolog.Logger
	net       *network

	handler map[kind]func(net.Conn, preamble)

	mu         sync.Mutex
	federation [16]byte // zero: none yet, only joins are answered
	conns      map[net.Conn]struct{}
	fresh      int // conns without a preamble
	closed     bool
	quietUntil time.Time
	suppressed int

	wg sync.WaitGroup
}

func newMux(ln net.Listener, handshake time.Duration, log zerolog.Logger, nw *network) *mux {
	return &mux{
		ln: ln, handshake: handshake, log: log, net: nw,
		handler: map[kind]func(net.Conn, preamble){}, conns: map[net.Conn]struct{}{},
	}
}

// serve starts accepting; handlers must be registered before.
func (m *mux) serve() {
	m.wg.Go(func() {
		for {
			conn, err := m.ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				m.refuse(nil, fmt.Errorf("accept: %w", err))
				if !m.pause() {
					return
				}
				continue
			}
			m.admit(conn)
		}
	})
}

// pause keeps a listener that fails for want of file descriptors from spinning.
func (m *mux) pause() bool {
	<-time.After(50 * time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.closed
}

func (m *mux) admit(conn net.Conn) {
	m.mu.Lock()
	full := m.closed || len(m.conns) >= maxConns || m.fresh >= maxHandshakes
	if !full {
		m.conns[conn] = struct{}{}
		m.fresh++
	}
	m.mu.Unlock()
	if full {
		m.refuse(conn, errors.New("too many peer connections"))
		_ = conn.Close()
		return
	}
	m.wg.Go(func() { m.handle(conn) })
}

func (m *mux) handle(raw net.Conn) {
	conn := &tracked{Conn: raw, mux: m}
	_ = conn.SetDeadline(time.Now().Add(m.handshake))
	p, err := readPreamble(conn)
	m.mu.Lock()
	m.fresh--
	ours := m.federation
	m.mu.Unlock()
	// A join carries its federation in the question, so that it can be told.
	if err == nil && p.kind != kindJoin && (p.federation != ours || ours == [16]byte{}) {
		err = fmt.Errorf("%w: federation %x, this one is %x", errPreamble, p.federation, ours)
	}
	if err == nil && m.net.accept != nil && !m.net.accept(conn, p.site) {
		err = errPreamble
	}
	if err != nil {
		m.refuse(conn, err)
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	m.handler[p.kind](conn, p)
}

// refuse logs at most one line in logEvery.
func (m *mux) refuse(conn net.Conn, err error) {
	now := time.Now()
	m.mu.Lock()
	quiet := now.Before(m.quietUntil)
	if quiet {
		m.suppressed++
	} else {
		m.quietUntil = now.Add(logEvery)
	}
	n := m.suppressed
	if !quiet {
		m.suppressed = 0
	}
	m.mu.Unlock()
	if quiet {
		return
	}
	ev := m.log.Warn().Err(err).Int("more_since_last_line", n)
	if conn != nil {
		ev = ev.Stringer("from", conn.RemoteAddr())
	}
	ev.Msg("peer connection closed: if it should be a member, check its federation, version and address")
}

func (m *mux) setFederation(f [16]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.federation = f
}

// close stops accepting, closes every connection and waits for the handlers.
func (m *mux) close() {
	m.mu.Lock()
	m.closed = true
	conns := m.conns
	m.conns = map[net.Conn]struct{}{}
	m.mu.Unlock()
	_ = m.ln.Close()
	for c := range conns {
		_ = c.Close()
	}
	m.wg.Wait()
}

// tracked is an accepted connection: it leaves the table when it is closed.
type tracked struct {
	net.Conn
	mux *mux
}

// Close implements net.Conn.
func (t *tracked) Close() error {
	t.mux.mu.Lock()
	delete(t.mux.conns, t.Conn)
	t.mux.mu.Unlock()
	return t.Conn.Close()
}

// track counts a dialed connection among those that close ends.
func (m *mux) track(conn net.Conn) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	m.conns[conn] = struct{}{}
	return &tracked{Conn: conn, mux: m}, nil
}

// dialer opens connections with a preamble.
type dialer struct {
	net  *network
	site string
}

func (d *dialer) dial(ctx context.Context, addr string, k kind, federation [16]byte) (net.Conn, error) {
	dial := d.net.dial
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	if at, ok := ctx.Deadline(); ok {
		_ = conn.SetWriteDeadline(at)
	}
	p := preamble{kind: k, federation: federation, site: d.site}
	if _, err := conn.Write(p.encode()); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greet %s: %w", addr, err)
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return conn, nil
}

// maxFrame bounds one frame of a forward or join connection, in bytes.
const maxFrame = MaxCallBytes + (1 << 20)

var errFrame = errors.New("malformed frame")

// readFrame reads a length-prefixed frame into buf, growing it with what really
// arrives, not with what the prefix promises.
func readFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(n[:]))
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, size, limit)
	}
	buf = buf[:0]
	for len(buf) < size {
		step := min(size-len(buf), 64<<10)
		at := len(buf)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return nil, fmt.Errorf("read frame: %w", err)
		}
	}
	return buf, nil
}

// frame starts a frame; endFrame fills in its length.
func frame(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

func endFrame(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}
