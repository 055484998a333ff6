package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// The form of what memberlist sends once a key is set, by its security.go.
const (
	encryptedMsg    = 10 // first byte of an encrypted stream
	encryption      = 1  // AES-GCM without padding
	encryptOverhead = 1 + 12 + 16
	labelMsg        = 244

	frameHeader = 1 + 4 + 1 // type, length, then the payload's encryption version

	// maxFrame bounds what one stream brings: the state of MaxMembers members
	// is below it (each at most 512 bytes of metadata and 160 of the rest).
	maxFrame = 1 << 20
	// maxPacket bounds a packet; memberlist fills them up to packetFill.
	maxPacket  = 2048
	packetFill = 1400
)

var errJunk = errors.New("not gossip of this federation")

// labelHeader returns what stands before each packet and each dialled stream.
func labelHeader(label string) []byte {
	return append([]byte{labelMsg, byte(len(label))}, label...)
}

// sealed checks the outside of an encrypted payload. memberlist would panic on
// an empty plaintext in a stream, and on the padding of version 0.
func sealed(version byte, length int) error {
	if version != encryption || length <= encryptOverhead {
		return fmt.Errorf("%w: encryption version %d, %d bytes", errJunk, version, length)
	}
	return nil
}

// stream is a TCP connection that lets memberlist read one frame of bounded
// length and nothing else.
type stream struct {
	net.Conn
	done func() // once, at Close

	head    []byte // of the frame, not yet handed out
	left    int    // bytes of the frame that are still on the connection
	checked bool
	once    sync.Once
}

// Read implements net.Conn: the header is checked before its first byte is
// handed out.
func (s *stream) Read(p []byte) (int, error) {
	if !s.checked {
		if err := s.check(); err != nil {
			return 0, err
		}
	}
	if len(s.head) > 0 {
		n := copy(p, s.head)
		s.head = s.head[n:]
		return n, nil
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

func (s *stream) check() error {
	var head [frameHeader]byte
	if _, err := io.ReadFull(s.Conn, head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if head[0] != encryptedMsg || length > maxFrame {
		return fmt.Errorf("%w: frame of type %d with %d bytes", errJunk, head[0], length)
	}
	if err := sealed(head[5], int(length)); err != nil {
		return err
	}
	s.head, s.left, s.checked = head[:], int(length)-1, true
	return nil
}

// Write implements net.Conn. A connection that failed is closed at once:
// memberlist forgets those on which the label could not be sent.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if err != nil {
		s.Close()
	}
	return n, err
}

// Close implements net.Conn.
func (s *stream) Close() error {
	err := s.Conn.Close()
	s.once.Do(s.done)
	return err
}
