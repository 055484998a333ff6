package transport

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

// errPlain: a client speaks plain HTTP to a port that is for TLS. It is neither served nor sent elsewhere: what it has
// sent was readable on its way, and nobody would notice.
var errPlain = problem.New(http.StatusBadRequest, "plain-http", "This port is for HTTPS",
	"the request came as plain HTTP: ask by https://; if it brought a token, others may have read that: have it revoked")

// plainAnswer is the whole answer to such a client.
func plainAnswer() []byte {
	body, err := json.Marshal(errPlain.Problem)
	if err != nil {
		panic(err) // it holds only texts
	}
	return fmt.Appendf(nil, "HTTP/1.1 400 Bad Request\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		wire.TypeProblem, len(body), body)
}

// securedOnly answers what is no TLS on a port that is for TLS.
type securedOnly struct{ net.Listener }

// Accept implements net.Listener.
func (l securedOnly) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &securedConn{Conn: conn}, nil
}

// securedConn looks at the first byte of a connection.
type securedConn struct {
	net.Conn
	looked bool
}

// tlsHandshake is the first byte of TLS.
const tlsHandshake = 0x16

// Read implements net.Conn.
func (c *securedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.looked || n == 0 {
		return n, err
	}
	c.looked = true
	if p[0] == tlsHandshake {
		return n, err
	}
	if 'A' <= p[0] && p[0] <= 'Z' { // a method
		c.refuse()
	}
	return 0, io.EOF
}

// refuse answers, and takes what is still coming: a connection that is closed over unread bytes is reset, and its
// client may lose the answer.
func (c *securedConn) refuse() {
	_ = c.SetDeadline(time.Now().Add(time.Second)) // the connection ends in any case
	if _, err := c.Write(plainAnswer()); err != nil {
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, 64<<10)
	}
}

// errPeerPort: a broker takes this port for another site's peer port.
var errPeerPort = errors.New("this is the API's port, and no peer port")

// peerProtocol begins the names of what brokers speak to each other (package node/identity).
const peerProtocol = "cloudshare/"

// secured returns cfg for this server: a broker that takes its port for a peer port is told so as on a plain port.
func (s *Server) secured(cfg *tls.Config, complain func(net.Conn)) *tls.Config {
	cfg = cfg.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, p := range hello.SupportedProtos {
			if strings.HasPrefix(p, peerProtocol) && s.cfg.Misdialed != nil {
				_, _ = hello.Conn.Write(s.cfg.Misdialed([4]byte{tlsHandshake, 3, 1, 0}))
				complain(hello.Conn)
				return nil, errPeerPort
			}
		}
		return nil, nil //nolint:nilnil // as this one
	}
	return cfg
}
