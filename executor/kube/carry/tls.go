package carry

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// Key is that of a handler, by which pods know it.
type Key struct{ private ed25519.PrivateKey }

// KeyOf makes it of a handler's secret: the same one for all lives of the broker.
func KeyOf(secret []byte) Key {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("carry tls"))
	return Key{ed25519.NewKeyFromSeed(m.Sum(nil))}
}

// Public is what pods are told of it.
func (k Key) Public() []byte { return k.private.Public().(ed25519.PublicKey) } //nolint:forcetypeassert // always is one

// certificate returns what TLS needs around a key: names, dates and issuers count for nothing.
func (k Key) certificate() (tls.Certificate, error) {
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0).UTC(),
		NotAfter: time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC), // no end (RFC 5280, 4.1.2.5)
	}
	der, err := x509.CreateCertificate(nil, &template, &template, k.private.Public(), k.private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k.private}, nil
}

// pinned are the settings of who talks to the holder of a key only.
func pinned(key []byte) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // chains say nothing here: VerifyConnection takes the key itself
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 1 {
				if k, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); ok && bytes.Equal(k, key) {
					return nil
				}
			}
			return errors.New("the handler shows another key than the one that this pod was told")
		},
	}
}

// Listen has a listener serve TLS to who begins with it, and leaves other connections as they are.
func Listen(l net.Listener, k Key) (net.Listener, error) {
	cert, err := k.certificate()
	if err != nil {
		return nil, err
	}
	return &listener{l, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}}, nil
}

type listener struct {
	net.Listener
	tls *tls.Config
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, tls: l.tls}, nil
}

// conn is a connection of one of both kinds: its first byte tells. A server reads before it does anything else, and so
// within its deadlines.
type conn struct {
	net.Conn
	tls   *tls.Config
	inner net.Conn // nil before the first byte
	isTLS bool
}

// handshake is the first byte of TLS.
const handshake = 22

// Read implements io.Reader.
func (c *conn) Read(p []byte) (int, error) {
	if c.inner == nil {
		var first [1]byte
		if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
			return 0, err
		}
		c.inner = &begun{c.Conn, io.MultiReader(bytes.NewReader(first[:]), c.Conn)}
		if c.isTLS = first[0] == handshake; c.isTLS {
			c.inner = tls.Server(c.inner, c.tls)
		}
	}
	return c.inner.Read(p)
}

// Write implements io.Writer.
func (c *conn) Write(p []byte) (int, error) {
	if c.inner == nil {
		return c.Conn.Write(p)
	}
	return c.inner.Write(p)
}

// begun is a connection some of which was read.
type begun struct {
	net.Conn
	in io.Reader
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) { return b.in.Read(p) }

type connKey struct{}

// ConnContext has requests know their connection: for [http.Server].
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// isSecret: a request came over TLS.
func isSecret(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(*conn)
	return ok && c.isTLS
}
