package outbound

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// Times of connections.
const (
	dialFor   = 20 * time.Second
	unackedIn = time.Minute // a task that takes nothing for so long is hung up on
	closeIn   = 30 * time.Second
	lookEvery = 250 * time.Millisecond
)

// openStream makes a connection of TCP to where a task wants one, and refuses the task's otherwise.
func (n *network) openStream(r *tcp.ForwarderRequest) {
	to := netip.AddrPortFrom(addressOf(r.ID().LocalAddress), r.ID().LocalPort)
	names := to == sandbox.NameServer
	if !names && !n.public(to.Addr()) || !enter(n.streams) {
		r.Complete(true)
		return
	}
	defer leave(n.streams)
	var outside net.Conn
	if !names {
		d := net.Dialer{Timeout: dialFor, Control: before(boundBuffers)}
		c, err := d.Dial("tcp4", to.String())
		if err == nil {
			defer c.Close()
		}
		if err != nil || sameAddress(c) {
			r.Complete(true)
			return
		}
		outside = c
	}
	var queue waiter.Queue
	ep, refusal := r.CreateEndpoint(&queue)
	if refusal != nil {
		r.Complete(true)
		return
	}
	r.Complete(false)
	patience := tcpip.TCPUserTimeoutOption(unackedIn)
	_ = ep.SetSockOpt(&patience) // a bound that an endpoint always takes
	ep.SocketOptions().SetKeepAlive(true)
	inside := gonet.NewTCPConn(&queue, ep)
	if names {
		n.answerStream(inside)
	} else {
		join(inner{inside, ep}, outer{outside.(*net.TCPConn)})
	}
	inside.Close()
	awaitClosed(ep)
}

// boundBuffers has the kernel hold little of a connection: by itself it takes megabytes for each that nobody reads.
func boundBuffers(fd int) error {
	return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, maxWindow),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, maxBuffer))
}

// half is a connection of which one direction can end, or all be broken off, which the other side is told.
type half interface {
	io.ReadWriter
	CloseWrite() error
	Abort()
}

// inner is the task's part of a connection.
type inner struct {
	*gonet.TCPConn
	ep tcpip.Endpoint
}

func (c inner) Abort() { c.ep.Abort() }

// outer is the world's.
type outer struct{ *net.TCPConn }

func (c outer) Abort() {
	_ = c.SetLinger(0) // fails only when closed
	c.Close()
}

// join copies in both directions until both have ended, or one is broken: then both are, since an end that looks
// orderly would pass half a download for a whole one.
func join(a, b half) {
	done := make(chan struct{})
	carry := func(to, from half) {
		_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
		if err == nil {
			err = to.CloseWrite()
		}
		if err != nil {
			to.Abort()
			from.Abort()
		}
	}
	go func() {
		defer close(done)
		carry(a, b)
	}()
	carry(b, a)
	<-done
}

// awaitClosed holds the place of a connection until all that was said has arrived, so that what ends is counted as
// well; what takes too long is broken off.
func awaitClosed(ep tcpip.Endpoint) {
	late := time.NewTimer(closeIn)
	defer late.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if s := tcp.EndpointState(ep.State()); s == tcp.StateClose || s == tcp.StateError || s == tcp.StateTimeWait {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			ep.Abort()
			return
		}
	}
}

// enter takes a place, if there is one.
func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func leave(places chan struct{}) { <-places }
