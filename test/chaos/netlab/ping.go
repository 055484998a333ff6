package netlab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// echo is ICMP's echo request and its reply (RFC 792).
const (
	echoRequest = 8
	echoReply   = 0
	echoSize    = 64
)

// ErrNoEcho says that none of the echo requests was answered.
var ErrNoEcho = errors.New("no echo request was answered")

// Ping measures round trips to another host, one echo request after the other, each answered
// within a time or lost. It returns those that were answered.
func (h *Host) Ping(ctx context.Context, to *Host, times int, within time.Duration) ([]time.Duration, error) {
	var conn net.PacketConn
	err := h.Do(func() (err error) {
		conn, err = net.ListenPacket("ip4:icmp", h.Addr)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ping %s: %w", to.Addr, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(0, 0)) })()
	var out []time.Duration
	for seq := range times {
		took, err := echo(conn, to, uint16(seq+1), within)
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return out, fmt.Errorf("ping %s: %w", to.Addr, err)
		default:
			out = append(out, took)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("ping %s: %w", to.Addr, ErrNoEcho)
	}
	return out, nil
}

// echo sends one request and waits for its reply.
func echo(conn net.PacketConn, to *Host, seq uint16, within time.Duration) (time.Duration, error) {
	request := make([]byte, echoSize)
	request[0] = echoRequest
	binary.BigEndian.PutUint16(request[6:], seq)
	binary.BigEndian.PutUint16(request[2:], checksum(request))
	began := time.Now()
	if err := conn.SetReadDeadline(began.Add(within)); err != nil {
		return 0, err
	}
	if _, err := conn.WriteTo(request, &net.IPAddr{IP: net.ParseIP(to.Addr)}); err != nil {
		return 0, err
	}
	reply := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(reply)
		if err != nil {
			return 0, err
		}
		if n >= 8 && reply[0] == echoReply && from.String() == to.Addr && binary.BigEndian.Uint16(reply[6:]) == seq {
			return time.Since(began), nil
		}
	}
}

// checksum is the Internet's (RFC 1071), of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 > 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
