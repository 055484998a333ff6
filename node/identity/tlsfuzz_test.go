package identity_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/cloudshare/cloudshare/node/identity"
)

// FuzzCertificate: whatever a stranger shows as a certificate, it is a key of Ed25519 in it, or no peer's.
func FuzzCertificate(f *testing.F) {
	cfg, err := exampleKey().Config()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cfg.Certificates[0].Certificate[0])
	f.Fuzz(func(t *testing.T, der []byte) {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		key, err := identity.PeerOf(&tls.ConnectionState{
			Version: tls.VersionTLS13, NegotiatedProtocol: identity.Protocol,
			PeerCertificates: []*x509.Certificate{cert},
		})
		shown, isOurs := cert.PublicKey.(ed25519.PublicKey)
		if (err == nil) != isOurs || isOurs && !shown.Equal(ed25519.PublicKey(key[:])) {
			t.Fatalf("%T is taken as %s: %v", cert.PublicKey, key, err)
		}
	})
}
