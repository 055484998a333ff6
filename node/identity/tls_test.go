package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/identity"
)

// handshake plays both ends, and returns what the server knows of the client and what either says.
func handshake(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, served, dialed error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		conn := tls.Client(b, client)
		err := conn.Handshake()
		if err == nil { // a server's refusal comes with the first read
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		done <- err
		_ = b.Close()
	}()
	conn := tls.Server(a, server)
	if served = conn.Handshake(); served == nil {
		state = conn.ConnectionState()
		_, served = conn.Write([]byte{1})
	}
	_ = a.Close()
	return state, served, <-done
}

func config(t *testing.T, k identity.Key) *tls.Config {
	t.Helper()
	c, err := k.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHandshakeProvesKeys(t *testing.T) {
	server, client := identity.Generate(), identity.Generate()
	var seen identity.Public
	dialer := config(t, client)
	dialer.VerifyConnection = func(s tls.ConnectionState) (err error) {
		seen, err = identity.PeerOf(&s)
		return err
	}
	state, served, dialed := handshake(t, config(t, server), dialer)
	if served != nil || dialed != nil {
		t.Fatal(served, dialed)
	}
	if got, err := identity.PeerOf(&state); got != client.Public() || err != nil {
		t.Errorf("the server sees %s, %v", got, err)
	}
	if seen != server.Public() {
		t.Errorf("the client sees %s", seen)
	}
}

// Clocks a year off, either way, do not matter.
func TestClocksDoNotMatter(t *testing.T) {
	for _, off := range []time.Duration{-40 * 365 * 24 * time.Hour, 365 * 24 * time.Hour, 4000 * 24 * time.Hour} {
		server, client := config(t, identity.Generate()), config(t, identity.Generate())
		server.Time = func() time.Time { return time.Now().Add(off) }
		client.Time = func() time.Time { return time.Now().Add(-off) }
		if _, served, dialed := handshake(t, server, client); served != nil || dialed != nil {
			t.Errorf("clocks %s off: %v, %v", off, served, dialed)
		}
	}
}

// A certificate tells a stranger that a key is there, and nothing else.
func TestCertificateTellsNothing(t *testing.T) {
	key := exampleKey()
	c := config(t, key)
	cert, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	names := cert.Subject.String() + cert.Issuer.String()
	if names != "" || len(cert.Extensions) != 0 || cert.SerialNumber.Int64() != 1 {
		t.Errorf("subject %q, issuer %q, extensions %v, serial %s", cert.Subject, cert.Issuer, cert.Extensions, cert.SerialNumber)
	}
	again := config(t, key).Certificates[0].Certificate[0]
	if string(again) != string(c.Certificates[0].Certificate[0]) {
		t.Error("one key has two certificates: they tell when each was made")
	}
}

// Whoever is no broker of this protocol fails, at either end.
func TestNoPeers(t *testing.T) {
	good := func() *tls.Config { return config(t, identity.Generate()) }
	with := func(change func(*tls.Config)) *tls.Config {
		c := good()
		change(c)
		return c
	}
	for name, stranger := range map[string]*tls.Config{
		"no certificate":    with(func(c *tls.Config) { c.Certificates = nil }),
		"TLS 1.2":           with(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }),
		"no protocol":       with(func(c *tls.Config) { c.NextProtos = nil }),
		"another protocol":  with(func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }),
		"another algorithm": with(func(c *tls.Config) { c.Certificates = []tls.Certificate{elliptical(t)} }),
		"two certificates": with(func(c *tls.Config) {
			c.Certificates[0].Certificate = append(c.Certificates[0].Certificate, elliptical(t).Certificate...)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if _, served, _ := handshake(t, good(), stranger); served == nil {
				t.Error("a server took it")
			}
			if name == "no certificate" {
				return // no server can be without
			}
			stranger.VerifyConnection = nil // it does not mind
			if _, _, dialed := handshake(t, stranger, good()); dialed == nil {
				t.Error("a client took it")
			}
		})
	}
}

// Somebody else's certificate is of no use without its key.
func TestStolenCertificate(t *testing.T) {
	owner, thief := config(t, identity.Generate()), config(t, identity.Generate())
	thief.Certificates[0].Certificate = owner.Certificates[0].Certificate
	if _, served, _ := handshake(t, config(t, identity.Generate()), thief); served == nil {
		t.Error("a certificate was taken without its key")
	}
}

// A second connection is not a continuation of the first: each proves its keys.
func TestNoResumption(t *testing.T) {
	server, client := config(t, identity.Generate()), config(t, identity.Generate())
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for range 2 {
		state, served, dialed := handshake(t, server, client)
		if served != nil || dialed != nil || state.DidResume {
			t.Fatalf("%v, %v, resumed: %v", served, dialed, state.DidResume)
		}
	}
}

func TestPeerOfNothing(t *testing.T) {
	if _, err := identity.PeerOf(&tls.ConnectionState{}); !errors.Is(err, identity.ErrNoPeer) {
		t.Error(err)
	}
}

// elliptical is a certificate of an ECDSA key, expired years ago.
func elliptical(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(7), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// BenchmarkHandshake is a connection between two brokers: processor time of both ends.
func BenchmarkHandshake(b *testing.B) {
	server, err := identity.Generate().Config()
	if err != nil {
		b.Fatal(err)
	}
	client, err := identity.Generate().Config()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		one, two := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- tls.Client(two, client).Handshake() }()
		if err := tls.Server(one, server).Handshake(); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		_, _ = one.Close(), two.Close()
	}
}
