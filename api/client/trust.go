package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
)

// Option says more about how a broker is asked.
type Option func(*Client)

// ErrUntrusted reports that who answers shows a certificate that is not trusted.
var ErrUntrusted = errors.New("the certificate there is not trusted")

// errOtherKey reports another key than the pinned one.
var errOtherKey = errors.New("its key is not the one that your token or context names")

// WithPin trusts an https broker by the SHA-256 of its certificate's public key (SubjectPublicKeyInfo), and by that
// alone: neither authorities nor names nor dates count. The broker makes such a certificate itself, and its tokens hold
// the pin.
func WithPin(pin [sha256.Size]byte) Option {
	return withTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection takes the key itself
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				got := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
				if subtle.ConstantTimeCompare(got[:], pin[:]) == 1 {
					return nil
				}
			}
			return errOtherKey
		},
	})
}

// WithCAs trusts an https broker by these authorities, instead of the system's.
func WithCAs(pool *x509.CertPool) Option {
	return withTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool})
}

func withTLS(cfg *tls.Config) Option {
	return func(c *Client) {
		if t, ok := c.http.Transport.(*http.Transport); ok {
			t.TLSClientConfig = cfg
		}
	}
}

// explained returns why nobody answered, with the remedy where a certificate or the wrong scheme is the reason.
func explained(err error) error {
	var record tls.RecordHeaderError
	var bad *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errOtherKey):
		return fmt.Errorf("%w: %w: the broker has a new one, or somebody stands between: ask its operator for a new token",
			ErrUntrusted, errOtherKey)
	case errors.As(err, &bad):
		return fmt.Errorf("%w: %w: name the authority's certificate with --ca-file, or use a token that names the broker's key",
			ErrUntrusted, bad.Err)
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return errors.New("there is no TLS at that port: use http:// if the broker is on this machine's loopback, or the port of its HTTPS")
	}
	return err
}
