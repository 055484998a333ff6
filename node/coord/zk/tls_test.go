//go:build zookeeper

package zk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// secured stands TLS before a server, as its own secure port would.
func secured(t *testing.T, addr string) (port string, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{der},
		PrivateKey:  key,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { _ = ln.Close() })
	wg.Go(func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				_ = from.Close()
				continue
			}
			wg.Go(func() { defer to.Close(); _, _ = io.Copy(to, from) })
			wg.Go(func() { defer from.Close(); _, _ = io.Copy(from, to) })
		}
	})
	_, p, _ := net.SplitHostPort(ln.Addr().String())
	return p, trust
}

// TestTLS: the server is checked by the name in the configuration.
func TestTLS(t *testing.T) {
	c := newCluster(t)
	port, trust := secured(t, servers.Servers()[0].Addr)
	open := func(host string, with *tls.Config) error {
		cfg := c.config("a", coordtest.NewMachine())
		cfg.dial, cfg.Servers, cfg.TLS = nil, []string{host + ":" + port}, with
		cfg.timing = quick()
		cfg.timing.open = 3 * time.Second
		l, err := Open(patience(t), cfg)
		if err == nil {
			err = l.Close()
		}
		return err
	}
	wants(t, open("localhost", &tls.Config{MinVersion: tls.VersionTLS12}), ErrUnreachable) // nobody vouches for it
	wants(t, open("127.0.0.1", &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}), ErrUnreachable)
	if err := open("localhost", &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}); err != nil {
		t.Error(err)
	}
}
