package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
)

// traffic is what was sent in a while.
type traffic struct{ bytes, packets int }

func (t *traffic) add(bytes int) { t.bytes, t.packets = t.bytes+bytes, t.packets+1 }

// links are what brokers of one host send each other, by the port that one of both listens at.
type links struct {
	first  uint16 // port of the first site's API; each site has portsOfSite
	sites  int
	calls  []traffic // by site: to and from the port for brokers
	gossip traffic
}

// total is all bytes.
func (l *links) total() int {
	sum := l.gossip.bytes
	for _, t := range l.calls {
		sum += t.bytes
	}
	return sum
}

// portsOfSite are the API's, the one for brokers and the one for gossip.
const portsOfSite = 3

// count counts an IP packet, of which the beginning is enough. The API's are the bench's own questions.
func (l *links) count(packet []byte, length int) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return
	}
	head := int(packet[0]&15) * 4
	if len(packet) < head+4 || packet[9] != unix.IPPROTO_TCP && packet[9] != unix.IPPROTO_UDP {
		return
	}
	for _, port := range []uint16{binary.BigEndian.Uint16(packet[head+2:]), binary.BigEndian.Uint16(packet[head:])} {
		at := int(port) - int(l.first)
		if at < 0 || at >= l.sites*portsOfSite {
			continue
		}
		switch at % portsOfSite {
		case 1:
			l.calls[at/portsOfSite].add(length)
		case 2:
			l.gossip.add(length)
		}
		return
	}
}

// listener counts what a host sends to itself.
type listener struct {
	links

	file   *os.File
	done   chan error
	failed error // of a packet; run's, and end's once run has ended
}

// listenIn begins to count.
func listenIn(h *netlab.Host, first, sites int) (*listener, error) {
	l := &listener{done: make(chan error, 1)}
	l.links = links{first: uint16(first), sites: sites, calls: make([]traffic, sites)}
	err := h.Do(func() error {
		const kind = unix.SOCK_DGRAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
		fd, err := unix.Socket(unix.AF_PACKET, kind, bigEndian(unix.ETH_P_IP))
		if err != nil {
			return fmt.Errorf("open a socket for packets: %w", err)
		}
		// Without it fewer fit; those that are lost are seen.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
		l.file = os.NewFile(uintptr(fd), "packets")
		return nil
	})
	if err != nil {
		return nil, err
	}
	go func() { l.done <- l.run() }()
	return l, nil
}

func bigEndian(v uint16) int { return int(v<<8 | v>>8) }

// run ends when the deadline that end sets is over.
func (l *listener) run() error {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	for err == nil && l.failed == nil {
		err = raw.Read(func(fd uintptr) bool { return l.take(int(fd)) || l.failed != nil })
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, l.failed)
}

// take counts packets that have come, some at a time, so that a deadline is seen among many. It reports whether there
// were any. A socket of one protocol is shown each packet once, when it arrives.
func (l *listener) take(fd int) bool {
	buf := make([]byte, 128)
	for i := range 64 {
		n, _, err := unix.Recvfrom(fd, buf, unix.MSG_TRUNC)
		if err != nil {
			if !errors.Is(err, syscall.EAGAIN) {
				l.failed = fmt.Errorf("receive packets: %w", err)
			}
			return i > 0
		}
		l.count(buf[:min(n, len(buf))], n)
	}
	return true
}

// end stops counting, with what has come. What the system dropped since it had no room makes the counts worthless.
func (l *listener) end() (links, error) {
	err := l.file.SetReadDeadline(time.Now())
	err = errors.Join(err, <-l.done)
	raw, cause := l.file.SyscallConn()
	if cause == nil {
		cause = raw.Control(func(fd uintptr) {
			for more := true; more && l.failed == nil; {
				more = l.take(int(fd))
			}
			err = errors.Join(err, l.failed, dropped(int(fd)))
		})
	}
	return l.links, errors.Join(err, cause, l.file.Close())
}

// dropped returns an error if a socket lost packets.
func dropped(fd int) error {
	stats, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	switch {
	case err != nil:
		return fmt.Errorf("ask for dropped packets: %w", err)
	case stats.Drops > 0:
		return fmt.Errorf("%d of %d packets were not counted", stats.Drops, stats.Packets)
	}
	return nil
}
