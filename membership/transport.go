package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"
)

const (
	// maxStreams bounds the streams that others hold open here.
	maxStreams = 32
	// bindTries: a port that is free for TCP may be taken for UDP.
	bindTries = 16
	// receiveBuffer is what the kernel may hold of packets, in bytes.
	receiveBuffer = 1 << 20
)

// transport is one port over TCP and UDP. It hands memberlist only what
// carries the federation's label and the form of an encrypted message, in
// buffers of its size; memberlist's own transport takes 64 KiB a packet and
// any number of streams.
type transport struct {
	t         timing
	header    []byte // label, as it stands before packets and streams
	bound     netip.AddrPort
	advertise netip.AddrPort // set by serve
	misdialed func([4]byte) []byte
	log       zerolog.Logger
	limit     *limiter

	tcp     *net.TCPListener
	udp     *net.UDPConn
	packets chan *memberlist.Packet
	streams chan net.Conn
	slots   chan struct{} // one for each stream of others

	ctx    context.Context // ends at Shutdown
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	open map[*stream]struct{} // all streams, ours and others'
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func listen(cfg *Config, t timing, limit *limiter) (*transport, error) {
	tcp, udp, err := bind(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w at %s, TCP and UDP: %w", ErrListen, cfg.Listen, err)
	}
	tr := &transport{
		t: t, header: labelHeader(cfg.label()), misdialed: cfg.Misdialed, log: cfg.Logger, limit: limit, tcp: tcp,
		udp:     udp,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
		slots: make(chan struct{}, maxStreams), open: map[*stream]struct{}{},
	}
	tr.bound = unmap(tcp.Addr().(*net.TCPAddr).AddrPort())
	// The kernel may grant less; then a burst loses packets, which gossip repeats.
	if err := udp.SetReadBuffer(receiveBuffer); err != nil {
		tr.log.Debug().Err(err).Msg("gossip: keep the default receive buffer")
	}
	tr.ctx, tr.cancel = context.WithCancel(context.Background())
	return tr, nil
}

// serve begins to take what others send; until then it waits in the kernel.
func (t *transport) serve(advertise netip.AddrPort) {
	t.advertise = advertise
	t.wg.Go(t.acceptLoop)
	t.wg.Go(t.receiveLoop)
}

// bind takes the same port for both.
func bind(address string) (*net.TCPListener, *net.UDPConn, error) {
	want, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		tcp, err := net.ListenTCP("tcp", want)
		if err != nil {
			return nil, nil, err
		}
		got := tcp.Addr().(*net.TCPAddr)
		udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: got.IP, Port: got.Port, Zone: got.Zone})
		if err == nil {
			return tcp, udp, nil
		}
		tcp.Close()
		if want.Port != 0 || try == bindTries {
			return nil, nil, err
		}
	}
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.advertise.Addr().AsSlice(), int(t.advertise.Port()), nil
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements memberlist.NodeAwareTransport. Addresses come from
// other members: they are never looked up.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	to, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("send packet: %w", err)
	}
	_, err = t.udp.WriteToUDPAddrPort(b, to)
	return time.Now(), err
}

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	to, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(t.ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	s := t.track(conn, func() {})
	if s == nil {
		return nil, net.ErrClosed
	}
	return s, nil
}

// track remembers a stream so that Shutdown ends it; nil if that has begun.
func (t *transport) track(conn net.Conn, done func()) *stream {
	s := &stream{Conn: conn}
	s.done = func() {
		t.mu.Lock()
		delete(t.open, s)
		t.mu.Unlock()
		done()
	}
	t.mu.Lock()
	if t.ctx.Err() != nil {
		t.mu.Unlock()
		conn.Close()
		done()
		return nil
	}
	t.open[s] = struct{}{}
	t.mu.Unlock()
	return s
}

// Shutdown implements memberlist.Transport: it ends every stream, and may be
// called again.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	t.cancel()
	open := make([]*stream, 0, len(t.open))
	for s := range t.open {
		open = append(open, s)
	}
	t.mu.Unlock()
	t.tcp.Close()
	t.udp.Close()
	for _, s := range open {
		s.Close()
	}
	t.wg.Wait()
	return nil
}

func (t *transport) receiveLoop() {
	buf := make([]byte, maxPacket+1)
	for {
		n, from, err := t.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			if !t.retryAfterPause("receive a packet", err) {
				return
			}
			continue
		}
		body, err := t.packet(buf[:n])
		if err != nil {
			t.junk("packet", from, err)
			continue
		}
		p := &memberlist.Packet{Buf: bytes.Clone(body), From: net.UDPAddrFromAddrPort(from), Timestamp: time.Now()}
		select {
		case t.packets <- p:
		case <-t.ctx.Done():
			return
		}
	}
}

// packet takes the label off.
func (t *transport) packet(b []byte) ([]byte, error) {
	body, ok := bytes.CutPrefix(b, t.header)
	if !ok || len(b) > maxPacket || len(body) == 0 {
		return nil, errJunk
	}
	return body, sealed(body[0], len(body))
}

func (t *transport) acceptLoop() {
	for {
		conn, err := t.tcp.Accept()
		if err != nil {
			if !t.retryAfterPause("accept a stream", err) {
				return
			}
			continue
		}
		select {
		case t.slots <- struct{}{}:
		default:
			conn.Close()
			t.limit.warn(&t.log, "streams").Int("open", maxStreams).Stringer("from", conn.RemoteAddr()).
				Msg("gossip: refused a stream, too many are open: find out who holds them")
			continue
		}
		if s := t.track(conn, func() { <-t.slots }); s != nil {
			t.wg.Go(func() { t.admit(s) })
		}
	}
}

// admit hands a stream with the right label to memberlist, which closes it.
func (t *transport) admit(s *stream) {
	if err := t.greeting(s.Conn); err != nil {
		s.Close()
		if from, ok := s.RemoteAddr().(*net.TCPAddr); ok && t.ctx.Err() == nil && !errors.Is(err, io.EOF) {
			t.junk("stream", from.AddrPort(), err)
		}
		return
	}
	select {
	case t.streams <- s:
	case <-t.ctx.Done():
		s.Close()
	}
}

func (t *transport) greeting(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(t.t.hello)); err != nil {
		return err
	}
	got := make([]byte, len(t.header))
	if _, err := io.ReadFull(conn, got[:4]); err != nil {
		return err
	}
	if t.redirect(conn, [4]byte(got)) {
		return io.EOF
	}
	if _, err := io.ReadFull(conn, got[4:]); err != nil {
		return err
	}
	if !bytes.Equal(got, t.header) {
		return errJunk
	}
	return nil
}

// redirect tells who takes this port for another one of the broker's.
func (t *transport) redirect(conn net.Conn, first [4]byte) bool {
	if t.misdialed == nil {
		return false
	}
	answer := t.misdialed(first)
	if answer == nil {
		return false
	}
	if _, err := conn.Write(answer); err == nil {
		_, _ = io.CopyN(io.Discard, conn, maxPacket) // what is unread when it is closed would drop the answer
	}
	t.limit.warn(&t.log, "misdialed").Stringer("from", conn.RemoteAddr()).
		Msg("gossip: somebody takes this gossip port for a peer port: give the peer port's address there (`join`, or `peer` and `advertise` of this site)")
	return true
}

func (t *transport) junk(what string, from netip.AddrPort, err error) {
	t.limit.warn(&t.log, "junk "+what).Err(err).Stringer("from", from).
		Msg("gossip: refused a " + what + ": if it is a site, its federation or gossip key differs; else close the port to it")
}

// retryAfterPause waits a little after a failed call, and reports whether to repeat it.
func (t *transport) retryAfterPause(what string, err error) bool {
	if t.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	t.limit.warn(&t.log, what).Err(err).Msg("gossip: failed to " + what)
	select {
	case <-t.ctx.Done():
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}
