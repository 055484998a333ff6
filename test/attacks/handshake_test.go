//go:build attacks

package attacks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// shown is a client's certificate: whose names and dates it has, and which key is behind it.
type shown struct {
	key         crypto.Signer
	name        string
	from, until time.Time
}

// certificate makes it.
func (s *shown) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: s.name}, DNSNames: []string{s.name},
		NotBefore: s.from, NotAfter: s.until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.key}
}

// greetBy handshakes as a TLS client of these settings, greets as a site, and returns the answer's first byte; 0: none
// came.
func greetBy(t *testing.T, s *testbed.Site, site string, settings *tls.Config) byte {
	t.Helper()
	settings.InsecureSkipVerify = true
	if settings.NextProtos == nil {
		settings.NextProtos = []string{identity.Protocol}
	}
	raw, err := net.DialTimeout("tcp", peerOf(t, s).Addr, limit)
	must(t, err)
	defer raw.Close()
	must(t, raw.SetDeadline(time.Now().Add(limit)))
	conn := tls.Client(raw, settings)
	if conn.Handshake() != nil {
		return 0
	}
	p := relay.Preamble{Kind: relay.KindForward, Group: stranger(t, "x").Group, Site: site, Means: s.Name}
	_, _ = conn.Write(p.Encode())
	answer := make([]byte, 2)
	if _, err = io.ReadFull(conn, answer); err != nil {
		return 0
	}
	return answer[0]
}

// signer is the key in a site's data folder.
func signer(t *testing.T, s *testbed.Site) ed25519.PrivateKey {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataOf(s), "key"))
	must(t, err)
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	must(t, err)
	return key.(ed25519.PrivateKey)
}

// Answers to a greeting.
const (
	greeted    = 1
	unknownKey = 4
)

// TestHandshakesOfOthers: neither older TLS, nor another protocol, nor another kind of key, nor none gets an answer,
// and
// a member's name in a certificate is no member's key.
func TestHandshakesOfOthers(t *testing.T) {
	attacked(t)
	now := time.Now()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	member := signer(t, shared.Sites[2])
	by := func(key crypto.Signer) []tls.Certificate {
		c := &shown{key: key, name: "site-3", from: now.Add(-time.Hour), until: now.Add(time.Hour)}
		return []tls.Certificate{c.certificate(t)}
	}
	two := by(member)
	two[0].Certificate = append(two[0].Certificate, by(other)[0].Certificate...)
	for what, c := range map[string]struct {
		settings *tls.Config
		want     byte
	}{
		"TLS 1.2 by a member's key": {&tls.Config{MaxVersion: tls.VersionTLS12, Certificates: by(member)}, 0},
		"another protocol":          {&tls.Config{NextProtos: []string{"h2"}, Certificates: by(member)}, 0},
		"no key":                    {&tls.Config{}, 0},
		"an RSA key":                {&tls.Config{Certificates: by(rsaKey)}, 0},
		"an ECDSA key":              {&tls.Config{Certificates: by(ecKey)}, 0},
		"two certificates":          {&tls.Config{Certificates: two}, 0},
		"a member's name":           {&tls.Config{Certificates: by(other)}, unknownKey},
		"a member's key":            {&tls.Config{Certificates: by(member)}, greeted},
	} {
		if got := greetBy(t, shared.Sites[0], "site-3", c.settings); got != c.want {
			t.Errorf("%s: %d, not %d", what, got, c.want)
		}
	}
}

// TestClocksDoNotMatter: whatever dates a member's certificate has, its key counts; and whatever dates a stranger's
// has.
func TestClocksDoNotMatter(t *testing.T) {
	attacked(t)
	now := time.Now()
	_, other, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	member := signer(t, shared.Sites[2])
	for _, years := range []int{-20, -1, 1, 20} {
		from := now.AddDate(years, 0, 0)
		for key, want := range map[*ed25519.PrivateKey]byte{&member: greeted, &other: unknownKey} {
			c := &shown{key: *key, name: "site-3", from: from, until: from.AddDate(0, 1, 0)}
			far := &tls.Config{
				Certificates: []tls.Certificate{c.certificate(t)}, Time: func() time.Time { return from },
			}
			if got := greetBy(t, shared.Sites[0], "site-3", far); got != want {
				t.Errorf("%d years off: %d, not %d", years, got, want)
			}
		}
	}
}
