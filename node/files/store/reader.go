package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/cloudshare/cloudshare/node/files"
)

// Reader reads a blob, which stays as long as it is open. ReadAt is safe for concurrent use, Read is not.
//
// Damage is found where it can be: a file that is gone or of another size by Open, one that the disk cannot read or
// that ends too early by any read, and any other byte than those of the hash by a Read to the end. ReadAt looks at no
// hash: who reads so checks the whole blob, as the receiver of a transfer does.
type Reader struct {
	s   *Store
	e   *entry
	f   *os.File
	sum hash.Hash // of what Read returned
	off int64     // of the next Read

	once sync.Once // of Close
	err  error     // Close's
}

var (
	_ io.ReaderAt   = (*Reader)(nil)
	_ io.ReadCloser = (*Reader)(nil)
)

// Open opens a blob of a place. Errors: ErrUnknown, ErrDamaged, ErrBusy, ErrOwner.
func (s *Store) Open(at Place, h files.Hash) (*Reader, error) {
	if err := s.acquire(1); err != nil {
		return nil, err
	}
	r, err := s.openBlob(key{at, h})
	if err != nil {
		s.release(1)
		return nil, err
	}
	return r, nil
}

func (s *Store) openBlob(k key) (*Reader, error) {
	e, err := s.hold(k)
	if err != nil {
		return nil, err
	}
	if k.Space == Cache {
		s.touch([]*entry{e})
	}
	f, err := s.disk.open(fileOf(k), os.O_RDONLY)
	r := &Reader{s: s, e: e, f: f, sum: sha256.New()}
	if err == nil {
		err = r.checkSize()
	}
	if err != nil {
		if f != nil {
			_ = f.Close()
		}
		s.unhold(e)
		return nil, r.judge("open", err)
	}
	return r, nil
}

// Path returns the absolute path of a whole blob's file, for those who copy it into a task's work folder or bind it
// there for reading. Nothing may write to it. It stays as long as the caller has it pinned. Errors: ErrUnknown,
// ErrDamaged, ErrOwner.
func (s *Store) Path(at Place, h files.Hash) (string, error) {
	e, err := s.hold(key{at, h})
	if err != nil {
		return "", err
	}
	s.unhold(e)
	return filepath.Join(s.dir, fileOf(e.key)), nil
}

// hold has a whole blob stay.
func (s *Store) hold(k key) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(k.Place); err != nil {
		return nil, err
	}
	e := s.entries[slot{key: k}]
	switch {
	case e == nil:
		return nil, fmt.Errorf("open %s: %w", k, ErrUnknown)
	case e.damaged:
		return nil, fmt.Errorf("open %s: %w: it was found before; put it again", k, ErrDamaged)
	}
	e.holds++
	if k.Space == Cache {
		e.used = s.now()
	}
	s.settle(e)
	return e, nil
}

// unhold ends a hold.
func (s *Store) unhold(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.holds--
	s.settle(e)
}

var errShort = errors.New("its file has another size")

func (r *Reader) checkSize() error {
	st, err := r.f.Stat()
	if err == nil && st.Size() != r.e.size {
		err = fmt.Errorf("%w: %d bytes instead of %d", errShort, st.Size(), r.e.size)
	}
	return err
}

// judge words an error of reading; one that the blob causes marks it as damaged.
func (r *Reader) judge(what string, err error) error {
	damage := []error{
		errShort, errOtherHash, os.ErrNotExist, syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG,
		syscall.ELOOP, syscall.EXDEV, // a link stands there that leads to itself, or out
	}
	for _, cause := range damage {
		if errors.Is(err, cause) {
			r.s.mu.Lock()
			r.e.damaged = true
			r.s.mu.Unlock()
			return fmt.Errorf("%s %s: %w: %w", what, r.e.key, ErrDamaged, err)
		}
	}
	if errors.Is(err, os.ErrClosed) {
		err = ErrClosed
	}
	return fmt.Errorf("%s %s: %w", what, r.e.key, err)
}

// Size returns how many bytes the blob has.
func (r *Reader) Size() int64 { return r.e.size }

// ReadAt reads as io.ReaderAt does.
func (r *Reader) ReadAt(p []byte, off int64) (n int, err error) {
	n, err = r.f.ReadAt(p, off)
	switch {
	case err == nil || errors.Is(err, io.EOF) && off+int64(n) >= r.e.size:
		return n, err
	case errors.Is(err, io.EOF):
		err = errShort
	}
	return n, r.judge("read", err)
}

var errOtherHash = errors.New("its bytes have another hash")

// Read reads the blob from its beginning. In the place of io.EOF it returns ErrDamaged if what it returned is not what
// the hash says: nothing of it is to be used then.
func (r *Reader) Read(p []byte) (n int, err error) {
	n, err = r.ReadAt(p[:min(int64(len(p)), r.e.size-r.off)], r.off)
	_, _ = r.sum.Write(p[:n]) // never fails
	r.off += int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return n, err
	case n > 0 || len(p) == 0:
		return n, nil
	case files.Hash(r.sum.Sum(nil)) != r.e.Hash:
		return 0, r.judge("read", errOtherHash)
	}
	return 0, io.EOF
}

// Close closes the reader. It may be called again.
func (r *Reader) Close() error {
	r.once.Do(func() {
		r.err = r.f.Close()
		r.s.unhold(r.e)
		r.s.release(1)
	})
	return r.err
}

// Verify reads a blob to its end and returns nil if it is what its hash says: so its keeper learns whether a receiver's
// ErrWrongHash is its own fault. Errors are Open's and Read's.
func (s *Store) Verify(at Place, h files.Hash) error {
	r, err := s.Open(at, h)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(io.Discard, onlyReader{r}, make([]byte, copyBytes))
	return errors.Join(err, r.Close())
}

// onlyReader hides what io.Copy would use beside Read.
type onlyReader struct{ io.Reader }
