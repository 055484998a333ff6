package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// directory is one that is being sent.
type directory struct {
	text     bytes.Buffer
	manifest *files.ManifestWriter
}

func newDirectory() *directory {
	d := &directory{}
	d.manifest = files.NewManifestWriter(&d.text)
	return d
}

// add has a site keep a file, unless its content stands in the manifest.
func (d *directory) add(ctx context.Context, s *testbed.Site, path string, content []byte) error {
	e := files.Entry{Path: path, Size: int64(len(content)), Hash: files.HashOf(content)}
	if d.manifest.Inlines(e.Size) {
		e.Inline = content
	} else if err := s.PutBlob(ctx, e.Hash.String(), content); err != nil {
		return err
	}
	return d.manifest.Add(e)
}

func (d *directory) send(ctx context.Context, s *testbed.Site) (sum string, err error) {
	if err = d.manifest.Close(); err != nil {
		return "", err
	}
	blob := files.BlobOf(d.text.Bytes())
	return blob.Hash.String(), s.Upload(ctx, blob.Hash.String(), blob.Size, &d.text)
}

// bareCopy moves files from a disk to another folder of it as two programs would that do nothing else: over one TLS
// connection, hashed as they come, then copied once more. It returns how long that takes. Small files stay until the
// run ends: an ext4 without a journal is slow to make files for minutes after many were removed.
func bareCopy(ctx context.Context, env environment, l fileLoad) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(env.dir, "bare-copy-")
	if err != nil {
		return 0, fmt.Errorf("make folder of a bare copy: %w", err)
	}
	if l.size > smallBytes {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	for i := range l.files {
		if err = writeFile(filepath.Join(dir, fmt.Sprintf("from-%05d", i)), l.random(0, i), int64(l.size)); err != nil {
			return 0, err
		}
	}
	conn, serve, err := tlsPipe(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	sent := make(chan error, 1)
	began := time.Now()
	go func() { sent <- sendFiles(serve, dir, l) }()
	for i := range l.files {
		h := sha256.New()
		came := filepath.Join(dir, fmt.Sprintf("came-%05d", i))
		if err = writeFile(came, io.TeeReader(conn, h), int64(l.size)); err != nil {
			return 0, errors.Join(err, <-sent)
		}
		if err = copyFile(filepath.Join(dir, fmt.Sprintf("task-%05d", i)), came); err != nil {
			return 0, err
		}
	}
	return time.Since(began), <-sent
}

func sendFiles(conn net.Conn, dir string, l fileLoad) error {
	defer conn.Close()
	buf := make([]byte, 1<<20)
	for i := range l.files {
		f, err := os.Open(filepath.Join(dir, fmt.Sprintf("from-%05d", i)))
		if err != nil {
			return fmt.Errorf("open what is copied: %w", err)
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{f}, buf)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// writeFile writes the first n bytes of r.
func writeFile(path string, r io.Reader, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make what is copied: %w", err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(r, n), make([]byte, min(n, 1<<20)))
	st, cause := f.Stat()
	if err = errors.Join(err, cause, f.Close()); err == nil && st.Size() != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("open what is copied: %w", err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("make a copy: %w", err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// tlsPipe returns both ends of a TLS connection over loopback.
func tlsPipe(ctx context.Context) (asker, server net.Conn, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(cryptorand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept() // nil if the dialing has failed
		if c, ok := conn.(*tls.Conn); ok {
			_ = c.HandshakeContext(ctx) // the dialer says what is wrong
		}
		accepted <- conn
	}()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}} //nolint:gosec // its own end
	if asker, err = d.DialContext(ctx, "tcp", l.Addr().String()); err != nil {
		return nil, nil, fmt.Errorf("dial: %w", err)
	}
	return asker, <-accepted, nil
}
