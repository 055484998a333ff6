package relay

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// What comes to a port of a broker is told apart by its first bytes, so that whoever has a wrong address reads which
// port answers. TLS hides a Preamble, not that it is TLS.

// isHello reports whether a connection begins with TLS, as those of brokers with keys do.
func isHello(first [4]byte) bool { return first[0] == 0x16 && first[1] == 0x03 }

// isHTTP reports whether a connection begins with a request of HTTP.
func isHTTP(first [4]byte) bool {
	switch string(first[:]) {
	case "GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "CONN":
		return true
	}
	return false
}

// Answers to those who speak something else than this port.
var (
	errHTTP  = fmt.Errorf("%w: HTTP was asked of the peer port: give the API's address there (`http` of this site)", errPreamble)
	errPlain = fmt.Errorf("%w: a broker without a key dials in plain: it is to join by a token (cloudshare invite NAME)", errPreamble)
	errTLS   = fmt.Errorf("%w: a broker with a key dials one that has none: their federations differ", errPreamble)
)

const httpAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n" +
	"Connection: close\r\n\r\nThis is the peer port of a CloudShare broker: ask at its API's address (`http` in its configuration).\n"

// sniff reads the first bytes of an accepted connection, and answers one that speaks neither TLS nor a Preamble,
// whichever this member takes. What it returns gives these bytes again.
func sniff(conn net.Conn, secured bool) (net.Conn, error) {
	var first [4]byte
	if n, err := io.ReadFull(conn, first[:]); err != nil {
		return conn, fmt.Errorf("read Preamble: after %d bytes: %w", n, err)
	}
	var answer []byte
	var err error
	switch {
	case isHTTP(first):
		answer, err = []byte(httpAnswer), errHTTP
	case secured && first == magic:
		answer, err = []byte{plainPreamble, 0}, errPlain
	case !secured && isHello(first):
		answer, err = []byte{noKeys, 0, 0, 0, 0}, errTLS
	default:
		return &replayed{Conn: conn, head: first[:]}, nil
	}
	tell(conn, answer)
	return conn, err
}

// tell sends a last word. What is unread when a connection is closed would drop it.
func tell(conn net.Conn, answer []byte) {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(answer); err != nil {
		return // it may have gone
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, conn, 64<<10)
}

// replayed gives what was read of a connection again.
type replayed struct {
	net.Conn
	head []byte
}

// Read implements net.Conn.
func (c *replayed) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// maxKept is how much is kept of an answer that is no TLS: longer than any of Misdialed's.
const maxKept = 512

// keptFirst keeps the first bytes that came.
type keptFirst struct {
	net.Conn
	first []byte // nil once nobody will ask for it
	done  bool
}

// Read implements net.Conn.
func (c *keptFirst) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.done {
		c.first = append(c.first, b[:min(n, maxKept-len(c.first))]...)
	}
	return n, err
}

// explain says what answers at an address instead of TLS, if its first bytes tell.
func (c *keptFirst) explain(err error, to Peer) error {
	var noTLS tls.RecordHeaderError
	if !errors.As(err, &noTLS) {
		return fmt.Errorf("%w: %w: no broker's peer port is there, or one of another version", errNoHandshake, err)
	}
	cause := readGreeting(bytes.NewReader(c.first), to)
	if cause == nil || errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: something else than TLS is spoken there: no broker's peer port is there", errNoHandshake)
	}
	return cause
}
