package outbound

import (
	"net"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// idleFlow ends a flow of UDP, which has no end of its own.
const idleFlow = 30 * time.Second

// maxDatagram is the most that one of UDP carries.
const maxDatagram = 64 << 10

// openFlow carries a task's datagrams to where it sends them. The task hears that nobody is there if it may not.
func (n *network) openFlow(r *udp.ForwarderRequest) bool {
	to := netip.AddrPortFrom(addressOf(r.ID().LocalAddress), r.ID().LocalPort)
	names := to == sandbox.NameServer
	if !names && !n.public(to.Addr()) || !enter(n.flows) {
		return false
	}
	var outside *net.UDPConn
	if !names {
		c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		if err != nil || sameAddress(c) {
			leave(n.flows)
			return false
		}
		outside = c
	}
	var queue waiter.Queue
	ep, refusal := r.CreateEndpoint(&queue)
	if refusal != nil {
		if outside != nil {
			outside.Close()
		}
		leave(n.flows)
		return false
	}
	inside := gonet.NewUDPConn(&queue, ep)
	go func() {
		defer leave(n.flows)
		defer inside.Close()
		if names {
			n.answerFlow(inside)
			return
		}
		defer outside.Close()
		exchange(inside, outside)
	}()
	return true
}

// exchange carries datagrams both ways until none has come for a while.
func exchange(inside *gonet.UDPConn, outside *net.UDPConn) {
	done := make(chan struct{})
	carry := func(to, from net.Conn) {
		buf := make([]byte, maxDatagram)
		for {
			deadline := time.Now().Add(idleFlow)
			_ = from.SetReadDeadline(deadline) // fails only when closed, as the read does
			size, err := from.Read(buf)
			if err != nil {
				break
			}
			// What goes one way only is no idle flow.
			_ = to.SetReadDeadline(deadline)
			_, _ = to.Write(buf[:size]) // what cannot be sent is lost, as datagrams are
		}
		to.Close()
		from.Close()
	}
	go func() {
		defer close(done)
		carry(inside, outside)
	}()
	carry(outside, inside)
	<-done
}
