package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// Files of a site's data folder.
const (
	KeyFile  = "api.key" // the key, which is a secret
	CertFile = "api.crt" // the certificate, for programs that know no pins
)

// SelfMade is a certificate that nobody but its own key vouches for.
type SelfMade struct {
	// Pin is the SHA-256 of the public key (its SubjectPublicKeyInfo): who knows it needs no authority.
	Pin  [sha256.Size]byte
	cert tls.Certificate
}

// OpenSelfMade returns the certificate of a data folder's key, which is made at the first start. It names the hosts for
// programs that look at names. Equal keys and hosts have equal certificates.
func OpenSelfMade(dataDir, site string, hosts []string) (*SelfMade, error) {
	key, err := openKey(filepath.Join(dataDir, KeyFile))
	if err != nil {
		return nil, err
	}
	der, err := certify(key, site, hosts)
	if err != nil {
		return nil, fmt.Errorf("make the API's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the API's certificate: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err = replace(filepath.Join(dataDir, CertFile), text, 0o644); err != nil {
		return nil, fmt.Errorf("write the API's certificate: %w", err)
	}
	return &SelfMade{
		Pin: PinOf(leaf), cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
	}, nil
}

// Get is a GetCertificate of package tls.
func (s *SelfMade) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.cert, nil }

// PinOf returns the pin of a certificate's key.
func PinOf(cert *x509.Certificate) [sha256.Size]byte {
	return sha256.Sum256(cert.RawSubjectPublicKeyInfo)
}

// openKey reads the key, or makes it. One that is damaged is never replaced: tokens are pinned to it.
func openKey(path string) (*ecdsa.PrivateKey, error) {
	text, err := readKey(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the API's key: %w", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := parsed.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("read the API's key: %s is damaged: restore it from a backup, or remove it and give users new tokens", path)
}

// readKey reads a file that nobody but its owner may read or replace.
func readKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil {
		err = wholefile.CheckSecret(path, st, "pass for this broker: remove it then, and give users new tokens")
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxKey+1)) // a longer one is damaged
}

// maxKey bounds the key's file in bytes; one takes 241.
const maxKey = 4 << 10

func makeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the API's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err == nil {
		err = replace(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the API's key: %w", err)
	}
	return key, nil
}

// certify signs a key's certificate by itself. Without randomness, the signature is a function of key and names
// (RFC 6979), so that a browser's exception for it outlives a restart.
func certify(key *ecdsa.PrivateKey, site string, hosts []string) ([]byte, error) {
	template := x509.Certificate{
		Subject:   pkix.Name{CommonName: "CloudShare site " + site},
		NotBefore: time.Unix(0, 0).UTC(),
		NotAfter:  time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC), // no end (RFC 5280, 4.1.2.5)
		KeyUsage:  x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	hosts = slices.Compact(slices.Sorted(slices.Values(append([]string{"localhost", "127.0.0.1", "::1"}, hosts...))))
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			if !ip.IsUnspecified() {
				template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
			}
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	serial := sha256.Sum256([]byte(site + "\n" + strings.Join(hosts, "\n"))) // another certificate has another one
	template.SerialNumber = new(big.Int).SetBytes(serial[:16])
	return x509.CreateCertificate(nil, &template, &template, key.Public(), key)
}

// replace writes a file, unless it is so already.
func replace(path string, data []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return wholefile.Replace(path, data, mode)
}
