package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lasting is how long certificates are valid that no test wants to expire.
const lasting = 24 * time.Hour

// authority signs the certificates of one cluster: of its servers, its
// components and its users.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate and its key, in PEM.
type pair struct{ cert, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	template := certificate(pkix.Name{CommonName: "cs-kube"}, lasting)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true,
		x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the authority's certificate: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, nil
}

// certificate is what all have in common. It was valid an hour ago: nothing here
// is about a clock that runs slow.
func certificate(subject pkix.Name, valid time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // it never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// issue signs a certificate for a user of these groups, or for a server at these
// addresses and names.
func (a *authority) issue(user string, groups []string, valid time.Duration, hosts ...string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template := certificate(pkix.Name{CommonName: user, Organization: groups}, valid)
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate of %s: %w", user, err)
	}
	text, err := keyPEM(key)
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), text}, err
}

// keyPEM is in the form that Kubernetes reads both halves of a key from.
func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// write puts the pair into a folder as name.crt and name.key.
func (p pair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.key, 0o600)
}
