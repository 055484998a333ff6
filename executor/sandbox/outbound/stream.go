package outbound

import (
	"io"
	"net"
	"net/netip"
	"time"

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
		c, err := net.DialTimeout("tcp4", to.String(), dialFor)
		if err != nil || sameAddress(c) {
			r.Complete(true)
			return
		}
		defer c.Close()
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
		join(inside, outside.(*net.TCPConn))
	}
	inside.Close()
	awaitClosed(ep)
}

// halfCloser is a connection of which one direction can end.
type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies in both directions until both have ended, or one is broken.
func join(a, b halfCloser) {
	done := make(chan struct{})
	carry := func(to, from halfCloser) {
		_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
		if err == nil {
			err = to.CloseWrite()
		}
		if err != nil {
			to.Close()
			from.Close()
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
