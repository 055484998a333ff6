package identity

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Protocol is the application protocol that both ends of a peer connection must name (ALPN).
const Protocol = "cloudshare/5"

// ErrNoPeer reports a TLS connection whose other end shows no key.
var ErrNoPeer = errors.New("no broker's peer connection")

// Config returns the settings of both ends of a peer connection: TLS 1.3, each end shows the key that it has, and
// none is refused here: whose the other one is (PeerOf), the caller looks up and judges. Names, dates and issuers in
// certificates count for nothing, so neither clocks nor authorities do. No session is resumed: each connection
// proves both keys.
func (k Key) Config() (*tls.Config, error) {
	cert, err := k.certificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{Protocol}, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, //nolint:gosec // chains say nothing here: VerifyConnection takes the key itself
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := PeerOf(&s)
			return err
		},
	}, nil
}

// certificate returns what TLS needs around a key. Equal keys have equal certificates, which tell nothing else.
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

// PeerOf returns the key that the other end of a connection has proven to hold.
func PeerOf(s *tls.ConnectionState) (Public, error) {
	switch {
	case s.Version != tls.VersionTLS13:
		return Public{}, fmt.Errorf("%w: TLS version %#x, not 1.3", ErrNoPeer, s.Version)
	case s.NegotiatedProtocol != Protocol:
		return Public{}, fmt.Errorf("%w: protocol %.20q, not %s", ErrNoPeer, s.NegotiatedProtocol, Protocol)
	case len(s.PeerCertificates) != 1:
		return Public{}, fmt.Errorf("%w: %d certificates, not one", ErrNoPeer, len(s.PeerCertificates))
	}
	key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return Public{}, fmt.Errorf("%w: a key of type %T, not Ed25519", ErrNoPeer, s.PeerCertificates[0].PublicKey)
	}
	return Public(key), nil
}
