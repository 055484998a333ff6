package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Every connection between members starts with a fixed Preamble:
//
//	"CSHR" · version · kind · 16 bytes federation · uint8 length · uint8 length ·
//	site of the dialer · site that it means
//
// Whatever else arrives is closed.

// Kind of a connection.
type Kind byte

// The kinds.
const (
	KindRaft    Kind = 1  // raft's RPCs
	KindForward Kind = 2  // calls to the leader
	KindJoin    Kind = 3  // one question, one answer
	KindFeed    Kind = 4  // entries from the leader, where a backend hands them out
	KindCompare Kind = 5  // one question about the state, one answer
	KindEnroll  Kind = 6  // one question of somebody who may be no member yet, one answer
	KindHTTP    Kind = 7  // HTTP between brokers, see HTTPListener
	KindKeys    Kind = 8  // questions for the keys of what is assigned to the dialer, one after the other
	KindFiles   Kind = 9  // pieces of blobs that the dialer may have, see package transfer
	KindLogs    Kind = 10 // questions for what attempts of the dialer's jobs have written, see package asklogs
	// KindProgress: questions for what attempts of the dialer's jobs do before they start, see package askprogress.
	KindProgress Kind = 11
)

// isQuestion reports whether connections of a kind may come before the group is known, and from those who do not know
// which site answers.
func (k Kind) isQuestion() bool { return k == KindJoin || k == KindEnroll }

// KindAt is where in the first bytes of a connection its kind stands.
const KindAt = 5

const (
	protocolVersion = 5
	preambleFixed   = 4 + 1 + 1 + 16 + 1 + 1
)

// LogEvery is how often one complaint is logged at most.
const LogEvery = 10 * time.Second

var magic = [4]byte{'C', 'S', 'H', 'R'}

var (
	errPreamble = errors.New("not a peer connection of this federation")
	errCrowded  = errors.New("too many peer connections: find out who opens them and keep strangers from the peer port")
)

// Preamble is what every connection between members starts with.
type Preamble struct {
	Kind  Kind
	Group [16]byte // whose members talk to each other: the lineage
	Site  string   // of the dialer
	// Means is the site that the dialer wants to reach: another one closes the
	// connection. Only a join may be meant for whichever answers ("").
	Means string
}

// Encode returns what the dialer sends.
func (p Preamble) Encode() []byte {
	dst := append(make([]byte, 0, preambleFixed+len(p.Site)+len(p.Means)), magic[:]...)
	dst = append(dst, protocolVersion, byte(p.Kind))
	dst = append(dst, p.Group[:]...)
	dst = append(dst, byte(len(p.Site)), byte(len(p.Means)))
	dst = append(dst, p.Site...)
	return append(dst, p.Means...)
}

// ReadPreamble reads no byte more than the Preamble, and checks all but the
// federation.
func ReadPreamble(r io.Reader) (Preamble, error) {
	var b [preambleFixed]byte
	if _, err := io.ReadFull(r, b[:4]); err != nil {
		return Preamble{}, fmt.Errorf("read Preamble: %w", err)
	}
	if [4]byte(b[:4]) != magic {
		return Preamble{}, fmt.Errorf("%w: starts with %q", errPreamble, b[:4])
	}
	if _, err := io.ReadFull(r, b[4:]); err != nil {
		return Preamble{}, fmt.Errorf("read Preamble: %w", err)
	}
	p := Preamble{Kind: Kind(b[KindAt]), Group: [16]byte(b[6:22])}
	if b[4] != protocolVersion {
		return p, fmt.Errorf("%w: protocol version %d, this broker speaks %d", errPreamble, b[4], protocolVersion)
	}
	if p.Kind < KindRaft || p.Kind > KindProgress || b[22] > 63 || b[23] > 63 {
		return p, fmt.Errorf("%w: kind %d", errPreamble, p.Kind)
	}
	sites := make([]byte, int(b[22])+int(b[23]))
	if _, err := io.ReadFull(r, sites); err != nil {
		return p, fmt.Errorf("read Preamble: %w", err)
	}
	p.Site, p.Means = string(sites[:b[22]]), string(sites[b[22]:])
	return p, nil
}

// Network is how members reach each other. Dial, Wrap and Accept are for tests that cut it, and may be nil.
type Network struct {
	// Identity has every connection be mutual TLS between keys that the roster knows. nil: connections are plain,
	// and whoever dials is believed.
	Identity *Identity

	Dial   func(ctx context.Context, addr string) (net.Conn, error)
	Wrap   func(conn net.Conn, addr string) net.Conn // a dialed connection, inside TLS
	Accept func(conn net.Conn, site string) bool     // false: close it
}

// dial opens a connection without a Preamble.
func (nw *Network) dial(ctx context.Context, addr string) (net.Conn, error) {
	if nw.Dial != nil {
		return nw.Dial(ctx, addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// Reach returns nil if something takes connections at an address. It says nothing there, which the other end takes for
// no fault.
func (nw *Network) Reach(ctx context.Context, addr string) error {
	conn, err := nw.dial(ctx, addr)
	if err != nil {
		return fmt.Errorf("reach %s: %w", addr, err)
	}
	_ = conn.Close()
	return nil
}

// secure has the other end of an accepted connection prove its key.
func (nw *Network) secure(raw net.Conn) (net.Conn, error) {
	if nw.Identity == nil {
		return raw, nil
	}
	c, err := nw.Identity.accept(raw)
	if err != nil {
		return raw, err
	}
	return c, nil
}

// judge says whether the other end of an accepted connection may open it: greeted, or why not.
func (nw *Network) judge(conn net.Conn, p Preamble) byte {
	c, ok := conn.(*peerConn)
	if !ok {
		return greeted
	}
	code := nw.Identity.judge(c.key, p)
	if code == greeted && !nw.Identity.allow(c, p.Site, p.Kind) {
		return unknownKey
	}
	return code
}

// Mux is the one peer listener: it reads preambles and hands connections on.
type Mux struct {
	ln        net.Listener
	site      string // this member's
	handler   map[Kind]func(net.Conn, Preamble)
	handshake time.Duration
	log       zerolog.Logger
	net       *Network

	accepted *connections

	mu         sync.Mutex
	group      [16]byte              // zero: none yet, only joins are answered, the others wait
	conns      map[net.Conn]struct{} // dialed ones
	closed     bool
	quietUntil time.Time
	suppressed int

	grouped chan struct{} // closed when the group is set, or there will be none
	once    sync.Once

	wg sync.WaitGroup
}

// NewMux takes the listener of a site over; a connection has as long as handshake
// for its preamble.
func NewMux(ln net.Listener, site string, handshake time.Duration, log zerolog.Logger, nw *Network) *Mux {
	return &Mux{
		ln: ln, site: site, handshake: handshake, log: log, net: nw,
		handler: map[Kind]func(net.Conn, Preamble){}, accepted: newConnections(), conns: map[net.Conn]struct{}{},
		grouped: make(chan struct{}),
	}
}

// Handle registers who gets the connections of a kind, before Serve.
func (m *Mux) Handle(k Kind, f func(net.Conn, Preamble)) { m.handler[k] = f }

// Serve starts accepting; handlers must be registered before.
func (m *Mux) Serve() {
	m.wg.Go(func() {
		for {
			conn, err := m.ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				m.Refuse(nil, fmt.Errorf("accept: %w", err))
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
func (m *Mux) pause() bool {
	<-time.After(50 * time.Millisecond)
	return !m.isClosed()
}

func (m *Mux) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func (m *Mux) admit(conn net.Conn) {
	if d := m.accepted.wait(conn); d > 0 {
		<-time.After(d)
	}
	a, victim := m.accepted.add(conn)
	if victim != nil {
		m.giveWay(victim)
	}
	if a == nil {
		if !m.isClosed() {
			m.Refuse(conn, errCrowded)
		}
		_ = conn.Close()
		return
	}
	m.wg.Go(func() { m.handle(a) })
}

// giveWay closes a connection that others need the place of.
func (m *Mux) giveWay(a *accepted) {
	m.Refuse(a.conn, fmt.Errorf("%w: it was silent for longest", errCrowded))
	_ = a.conn.Close()
}

func (m *Mux) handle(a *accepted) {
	_ = a.conn.SetDeadline(time.Now().Add(m.handshake))
	inner, err := sniff(a.conn, m.net.Identity != nil)
	reached := errors.Is(err, io.EOF) // and nothing more: see Reach
	if err == nil {
		inner, err = m.net.secure(inner)
	}
	conn := &acceptedConn{Conn: inner, of: a, table: m.accepted}
	var p Preamble
	if err == nil {
		p, err = m.receive(conn)
	}
	if err == nil && !boundsOf(p.Kind).listens {
		if err = conn.await(); gaveUp(p.Kind, err) {
			_ = conn.Close()
			return
		}
	}
	if err == nil {
		victim, ok := m.accepted.greet(a, p)
		if victim != nil {
			m.giveWay(victim)
		}
		if !ok {
			err = errCrowded
		}
	}
	if err != nil {
		if !reached {
			m.Refuse(conn, err)
		}
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	m.handler[p.Kind](conn, p)
}

// gaveUp reports whether a member has no use for its connection any more. An HTTP client dials for a request that then
// may take another connection, and keeps the new one: that says nothing for long, and is no fault.
func gaveUp(k Kind, err error) bool {
	return errors.Is(err, io.EOF) || k == KindHTTP && errors.Is(err, os.ErrDeadlineExceeded)
}

// receive reads the Preamble of a connection, and answers it.
func (m *Mux) receive(conn *acceptedConn) (Preamble, error) {
	p, err := ReadPreamble(conn.Conn)
	if err != nil {
		return p, err
	}
	if code := m.net.judge(conn.Conn, p); code != greeted {
		return p, m.refuseKey(conn.Conn, p, code)
	}
	if err = m.check(p); err != nil {
		return p, err
	}
	if m.net.Accept != nil && !m.net.Accept(conn, p.Site) {
		return p, errPreamble
	}
	return p, m.greet(conn, p)
}

// check returns why a Preamble is none for this member.
func (m *Mux) check(p Preamble) error {
	// A question carries its federation, so that it can be told.
	if !p.Kind.isQuestion() {
		m.awaitGroup()
		m.mu.Lock()
		ours := m.group
		m.mu.Unlock()
		if p.Group != ours || ours == [16]byte{} {
			return fmt.Errorf("%w: federation %x, this one is %x", errPreamble, p.Group, ours)
		}
	}
	// A member asks itself one thing only: who answers at its address. One that means
	// another site has a wrong address of it, and is told so (greet).
	if !p.Kind.isQuestion() && p.Site == m.site && p.Means == m.site {
		return fmt.Errorf("%w: somebody greets %s in its own name", errPreamble, m.site)
	}
	if m.handler[p.Kind] == nil {
		return fmt.Errorf("%w: kind %d is none of this backend's", errPreamble, p.Kind)
	}
	return nil
}

// Refuse logs at most one line in LogEvery.
func (m *Mux) Refuse(conn net.Conn, err error) {
	now := time.Now()
	m.mu.Lock()
	quiet := now.Before(m.quietUntil)
	if quiet {
		m.suppressed++
	} else {
		m.quietUntil = now.Add(LogEvery)
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

// SetGroup says whose connections are taken from now on.
func (m *Mux) SetGroup(f [16]byte) {
	m.mu.Lock()
	m.group = f
	m.mu.Unlock()
	m.once.Do(func() { close(m.grouped) })
}

// awaitGroup waits for the group, for as long as a handshake may take: the leader
// dials a member that it has just admitted, which is about to know that.
func (m *Mux) awaitGroup() {
	select {
	case <-m.grouped:
	case <-time.After(m.handshake):
	}
}

// Close stops accepting, closes every connection and waits for the handlers.
func (m *Mux) Close() {
	m.mu.Lock()
	m.closed = true
	conns := m.conns
	m.conns = map[net.Conn]struct{}{}
	m.mu.Unlock()
	m.once.Do(func() { close(m.grouped) })
	_ = m.ln.Close()
	for _, c := range m.accepted.close() {
		_ = c.Close()
	}
	for c := range conns {
		_ = c.Close()
	}
	m.wg.Wait()
}

// tracked is a dialed connection: it leaves the table when it is closed.
type tracked struct {
	net.Conn
	mux *Mux
}

// Close implements net.Conn.
func (t *tracked) Close() error {
	t.mux.mu.Lock()
	delete(t.mux.conns, t.Conn)
	t.mux.mu.Unlock()
	return t.Conn.Close()
}

// Track counts a dialed connection among those that Close ends.
func (m *Mux) Track(conn net.Conn) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	m.conns[conn] = struct{}{}
	return &tracked{Conn: conn, mux: m}, nil
}

// Dialer opens connections with a Preamble.
type Dialer struct {
	Net  *Network
	Site string
	// Known returns where else a site may be, by what others tell; nil: nothing is
	// told. Vouch asks whether that is so, before anything else is sent there.
	Known func(site string) []string
	Vouch func(ctx context.Context, to Peer) bool
}

// Dial opens a connection to a member, and returns once that has answered the
// greeting; ctx bounds both. ErrOtherSite: another member answers there.
func (d *Dialer) Dial(ctx context.Context, to Peer, k Kind, group [16]byte) (net.Conn, error) {
	others := d.otherAddresses(to)
	if len(others) == 0 {
		return d.dialAt(ctx, to, k, group)
	}
	first, cancel := halfOf(ctx)
	conn, err := d.dialAt(first, to, k, group)
	cancel()
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	for _, other := range others {
		if !d.Vouch(ctx, other) {
			continue
		}
		if conn, cause := d.dialAt(ctx, other, k, group); cause == nil {
			return conn, nil
		}
	}
	return nil, err
}

// maxOtherAddresses bounds the addresses that are tried besides the configured one.
const maxOtherAddresses = 4

func (d *Dialer) otherAddresses(to Peer) (others []Peer) {
	if d.Known == nil || to.Site == "" {
		return nil
	}
	for _, addr := range d.Known(to.Site) {
		if addr != to.Addr && CheckAddress(addr) == nil && len(others) < maxOtherAddresses {
			others = append(others, Peer{Site: to.Site, Addr: addr})
		}
	}
	return others
}

// halfOf leaves half of the time for a second attempt.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	at, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(at)/2)
}

// dialAt dials the one address.
func (d *Dialer) dialAt(ctx context.Context, to Peer, k Kind, group [16]byte) (net.Conn, error) {
	conn, err := d.connect(ctx, to, k)
	if err != nil {
		return nil, err
	}
	if d.Net.Wrap != nil {
		conn = d.Net.Wrap(conn, to.Addr)
	}
	p := Preamble{Kind: k, Group: group, Site: d.Site, Means: to.Site}
	if err := p.exchange(ctx, conn, to); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greet %s: %w", to.Addr, err)
	}
	return conn, nil
}

// connect returns a connection to the one that is meant, by its key where there are keys.
func (d *Dialer) connect(ctx context.Context, to Peer, k Kind) (net.Conn, error) {
	conn, err := d.Net.dial(ctx, to.Addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", to.Addr, err)
	}
	if d.Net.Identity == nil {
		return conn, nil
	}
	secured, err := d.Net.Identity.connect(ctx, conn, to, k)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greet %s: %w", to.Addr, err)
	}
	return secured, nil
}

// MaxFrame bounds one frame of a forward or join connection, in bytes.
const MaxFrame = MaxCallBytes + (1 << 20)

var errFrame = errors.New("malformed frame")

// ReadFrame reads a length-prefixed frame into buf, growing it with what really
// arrives, not with what the prefix promises.
func ReadFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	return readFrame(r, buf, limit, func(int) error { return nil })
}

// Frame starts a frame; EndFrame fills in its length.
func Frame(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// EndFrame fills in the length of a frame.
func EndFrame(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}
