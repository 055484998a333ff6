package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// maxFile bounds a key file in bytes; one takes 119.
const maxFile = 4 << 10

// pemType is what stands in the first line of a key file (PKCS #8, as openssl writes it).
const pemType = "PRIVATE KEY"

// Errors of key files.
var (
	// ErrKeyFile reports a file that holds no key that may be used.
	ErrKeyFile = errors.New("key file cannot be used")
	// ErrExposed reports a file that others than its owner may read or replace.
	ErrExposed = wholefile.ErrExposed
)

// Save writes the key into a new file that only its owner may read. After a crash there is the whole file or none.
// It wraps os.ErrExist if there is one already: a key is never replaced in place.
func (k Key) Save(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	if err = writeNew(path, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// writeNew writes a file that did not exist, whole and synced.
func writeNew(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.new") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), path) // unlike a rename it never replaces
	}
	if err == nil {
		err = syncFolder(dir)
	}
	return err
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Load reads the key of a file that nobody but its owner, this process' user or root, may read or replace.
func Load(path string) (Key, error) {
	data, err := readOwn(path)
	if err != nil {
		return Key{}, err
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != pemType || len(bytes.TrimSpace(rest)) > 0 {
		return Key{}, unusable(path, "it is not one "+pemType+" in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, unusable(path, "it is damaged")
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return Key{}, unusable(path, fmt.Sprintf("it holds a %T, not an Ed25519 key", key))
	}
	return Key{private}, nil
}

func unusable(path, why string) error {
	return fmt.Errorf("%w: %s: %s: restore it from a backup", ErrKeyFile, path, why)
}

// readOwn reads a small regular file, once its owner and mode are those of a secret. It follows no link.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%w: %s is a link: put the file itself there", ErrExposed, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil {
		err = checkSecret(path, st)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(data) > maxFile {
		return nil, unusable(path, fmt.Sprintf("it is larger than %d bytes", maxFile))
	}
	return data, nil
}

// checkSecret refuses what others may read or replace.
func checkSecret(path string, st os.FileInfo) error {
	if !st.Mode().IsRegular() {
		return unusable(path, "it is no file")
	}
	return wholefile.CheckSecret(path, st, "act as this site")
}
