package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// Bounds of one sandbox's connections. Each of TCP holds two buffers of at most maxBuffer besides two for copying.
const (
	maxOpening  = 64  // of TCP, not open yet
	maxStreams  = 256 // of TCP
	maxFlows    = 128 // of UDP
	maxLookups  = 512 // flows of questions for names
	maxAsking   = 64  // names at a time
	maxBuffer   = 128 << 10
	leastBuffer = 4 << 10
	maxWindow   = 512 << 10 // of what the world sends, in the kernel
	queued      = 256       // packets on their way to the sandbox
	// Of UDP, a second and at once: what a stack holds of datagrams it counts by their contents, of which they may
	// have none. The flows take many more than come.
	datagrams, datagramsAtOnce = 20_000, 4_000
)

// nic is the stack's only interface.
const nic = tcpip.NICID(1)

// network is the stack of one sandbox.
type network struct {
	device *os.File
	link   *channel.Endpoint
	stack  *stack.Stack
	public func(netip.Addr) bool // what may be reached
	names  *resolver
	// What there is of each kind; a full one lets nobody in.
	streams, flows, lookups, asking chan struct{}
	datagrams                       *rate.Limiter
}

// newStack makes a stack that takes every address but for which it finds no way.
func newStack(device *os.File) (*network, error) {
	n := &network{
		device: device, link: channel.New(queued, sandbox.DeviceMTU, ""), public: public,
		names:   &resolver{servers: systemServers},
		streams: make(chan struct{}, maxStreams),
		flows:   make(chan struct{}, maxFlows),
		lookups: make(chan struct{}, maxLookups),
		asking:  make(chan struct{}, maxAsking),

		datagrams: rate.NewLimiter(datagrams, datagramsAtOnce),
	}
	n.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	if err := n.limit(); err != nil {
		return nil, fmt.Errorf("bound connections: %s", err)
	}
	if err := n.stack.CreateNIC(nic, n.link); err != nil {
		return nil, fmt.Errorf("make an interface: %s", err)
	}
	// It answers in the name of everybody outside.
	if err := n.stack.SetPromiscuousMode(nic, true); err != nil {
		return nil, fmt.Errorf("take all addresses: %s", err)
	}
	if err := n.stack.SetSpoofing(nic, true); err != nil {
		return nil, fmt.Errorf("answer for all addresses: %s", err)
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	streams := tcp.NewForwarder(n.stack, maxBuffer, maxOpening, n.openStream)
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, streams.HandlePacket)
	flows := udp.NewForwarder(n.stack, n.openFlow)
	n.stack.SetTransportProtocolHandler(udp.ProtocolNumber, flows.HandlePacket)
	return n, nil
}

// limit bounds what connections hold.
func (n *network) limit() tcpip.Error {
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: leastBuffer, Default: maxBuffer / 2, Max: maxBuffer}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: leastBuffer, Default: maxBuffer / 2, Max: maxBuffer}
	selective := tcpip.TCPSACKEnabled(true)
	// Nothing that is late comes from a device.
	wait := tcpip.TCPTimeWaitTimeoutOption(time.Second)
	for _, option := range []tcpip.SettableTransportProtocolOption{&receive, &send, &selective, &wait} {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return err
		}
	}
	return nil
}

// ask has the loop that carries packets answer: it is woken where it waits for one, and if it hangs, it is silent.
func (n *network) ask() { _ = n.device.SetReadDeadline(time.Unix(1, 0)) } // a closed one ends the loop

// run carries packets until the device has gone, and answers when it is asked.
func (n *network) run(answer func()) {
	go n.send()
	packet := make([]byte, 64<<10)
	for {
		size, err := n.device.Read(packet)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = n.device.SetReadDeadline(time.Time{}) // before the answer: who asks after it is heard again
			answer()
			continue
		}
		if err != nil {
			return
		}
		proto, ok := ofTask(packet[:size])
		if !ok || proto == unix.IPPROTO_UDP && !n.datagrams.Allow() {
			continue
		}
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet[:size])})
		n.link.InjectInbound(ipv4.ProtocolNumber, p)
		p.DecRef()
	}
}

// send carries what the stack says to the sandbox.
func (n *network) send() {
	for {
		p := n.link.ReadContext(context.Background())
		if p == nil {
			return
		}
		view := p.ToView()
		_, _ = n.device.Write(view.AsSlice()) // a device without room drops it, as any network does
		view.Release()
		p.DecRef()
	}
}

// ofTask reports whether it is a packet that the stack takes: TCP or UDP over IPv4, by the sandbox's own address. The
// stack would answer echo requests itself, for whomever they were meant.
func ofTask(packet []byte) (proto tcpip.TransportProtocolNumber, ok bool) {
	h := header.IPv4(packet)
	if len(packet) < header.IPv4MinimumSize || !h.IsValid(len(packet)) {
		return 0, false
	}
	proto = h.TransportProtocol()
	return proto, (proto == unix.IPPROTO_TCP || proto == unix.IPPROTO_UDP) &&
		addressOf(h.SourceAddress()) == sandbox.DeviceAddress.Addr()
}

// addressOf is an address of the stack's.
func addressOf(a tcpip.Address) netip.Addr {
	if a.Len() != net4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4(a.As4())
}

const net4 = 4
