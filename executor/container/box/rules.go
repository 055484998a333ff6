package box

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// rule is one by which the kernel chooses a packet's way (ip-rule(8)).
type rule struct {
	to       netip.Prefix
	priority uint32
	refuse   bool   // else the main table's way
	proto    uint8  // 0 = any
	port     uint16 // with proto: of the other end
}

// ruleMaker makes rules by netlink: a library for that is large, and this is one message.
type ruleMaker struct {
	fd  int
	seq uint32
}

func newRuleMaker() (*ruleMaker, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("ask the kernel: %w", err)
	}
	return &ruleMaker{fd: fd}, nil
}

func (m *ruleMaker) close() { _ = unix.Close(m.fd) }

// Attributes and actions of rules: include/uapi/linux/fib_rules.h.
const (
	attrDst, attrPriority, attrTable, attrProto, attrPorts = 1, 6, 15, 22, 24
	actionTable, actionUnreachable                         = 1, 7
)

// add makes a rule; an equal one that is there is none the worse.
func (m *ruleMaker) add(r rule) error {
	m.seq++
	if err := unix.Sendto(m.fd, r.message(m.seq), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send rule: %w", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(m.fd, answer, 0)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer about a rule is none")
	}
	code := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:]))
	if code == 0 || unix.Errno(-code) == unix.EEXIST {
		return nil
	}
	return unix.Errno(-code)
}

// message is an RTM_NEWRULE.
func (r rule) message(seq uint32) []byte {
	family, action := byte(unix.AF_INET), byte(actionTable)
	if r.to.Addr().Is6() {
		family = unix.AF_INET6
	}
	if r.refuse {
		action = actionUnreachable
	}
	b := make([]byte, unix.NLMSG_HDRLEN, 128)
	b = append(b, family, byte(r.to.Bits()), 0, 0, unix.RT_TABLE_MAIN, 0, 0, action, 0, 0, 0, 0)
	if r.to.Bits() > 0 {
		b = appendAttr(b, attrDst, r.to.Addr().AsSlice())
	}
	b = appendAttr(b, attrPriority, binary.NativeEndian.AppendUint32(nil, r.priority))
	if !r.refuse {
		b = appendAttr(b, attrTable, binary.NativeEndian.AppendUint32(nil, unix.RT_TABLE_MAIN))
	}
	if r.proto != 0 {
		b = appendAttr(b, attrProto, []byte{r.proto})
		ports := binary.NativeEndian.AppendUint16(nil, r.port)
		b = appendAttr(b, attrPorts, binary.NativeEndian.AppendUint16(ports, r.port))
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_NEWRULE)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	binary.NativeEndian.PutUint32(b[8:], seq)
	return b
}

// appendAttr adds an attribute, filled up to four bytes.
func appendAttr(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
