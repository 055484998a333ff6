package transport

import (
	"io"
	"net"

	"github.com/rs/zerolog"
)

// redirecting tells who takes the API's port for another one of the broker's; HTTP
// would wait for the rest of the line.
type redirecting struct {
	net.Listener
	answer func(first [4]byte) []byte
	log    zerolog.Logger
	told   seldom
}

// Accept implements net.Listener.
func (l *redirecting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &firstRead{Conn: conn, of: l}, nil
}

func (l *redirecting) complain(conn net.Conn) {
	if !l.told.now() {
		return
	}
	l.log.Warn().Stringer("from", conn.RemoteAddr()).
		Msg("somebody takes the API's port (http) for a peer port, or speaks TLS to it: give the peer port's address there (`join`, or `peer` and `advertise` of this site)")
}

// firstRead looks at the first bytes of a connection.
type firstRead struct {
	net.Conn
	of     *redirecting
	looked bool
}

// Read implements net.Conn.
func (c *firstRead) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.looked || n == 0 {
		return n, err
	}
	c.looked = true
	if n < 4 {
		return n, err
	}
	answer := c.of.answer([4]byte(p))
	if answer == nil {
		return n, err
	}
	_, _ = c.Write(answer)
	c.of.complain(c)
	return 0, io.EOF
}
