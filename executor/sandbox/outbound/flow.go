package outbound

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
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
	if to == sandbox.NameServer {
		return n.openNames(r)
	}
	if !n.public(to.Addr()) || !enter(n.flows) {
		return false
	}
	outside, err := dialUDP(to)
	if err != nil {
		leave(n.flows)
		return false
	}
	inside := accept(r)
	if inside == nil {
		outside.Close()
		leave(n.flows)
		return false
	}
	go func() {
		defer leave(n.flows)
		defer outside.Close()
		defer inside.Close()
		exchange(inside, outside)
	}()
	return true
}

// openNames answers questions: each comes from a port of its own, so these flows are counted by themselves.
func (n *network) openNames(r *udp.ForwarderRequest) bool {
	if !enter(n.lookups) {
		return false
	}
	inside := accept(r)
	if inside == nil {
		leave(n.lookups)
		return false
	}
	go func() {
		defer leave(n.lookups)
		defer inside.Close()
		n.answerFlow(inside)
	}()
	return true
}

// accept returns the task's part of a flow, nil if the stack has no room for it.
func accept(r *udp.ForwarderRequest) *gonet.UDPConn {
	var queue waiter.Queue
	ep, refusal := r.CreateEndpoint(&queue)
	if refusal != nil {
		return nil
	}
	return gonet.NewUDPConn(&queue, ep)
}

// exchange carries datagrams both ways until none has come for a while.
func exchange(inside *gonet.UDPConn, outside *net.UDPConn) {
	done := make(chan struct{})
	carry := func(to net.Conn, send func([]byte), from net.Conn) {
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
			send(buf[:size])
		}
		to.Close()
		from.Close()
	}
	go func() {
		defer close(done)
		carry(inside, func(b []byte) { _, _ = inside.Write(b) }, outside)
	}()
	carry(outside, sender(outside), inside)
	<-done
}

// sender returns what sends a datagram at once, or loses it, as a network does: one that waited for room would have
// what the task sends meanwhile pile up.
func sender(c *net.UDPConn) func([]byte) {
	raw, err := c.SyscallConn()
	if err != nil {
		return func([]byte) {}
	}
	return func(b []byte) {
		_ = raw.Write(func(fd uintptr) bool {
			_, _ = unix.Write(int(fd), b)
			return true
		})
	}
}
