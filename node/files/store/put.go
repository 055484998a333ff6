package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/cloudshare/cloudshare/node/files"
)

// copyBytes is how much is read, hashed and written at a time.
const copyBytes = 256 << 10

// buffers are what Put reads into: most that it keeps is small.
var buffers = sync.Pool{New: func() any { return new([copyBytes]byte) }}

// incoming is content that is being written.
type incoming struct {
	s        *Store
	at       Place
	limit    int64
	name     string // below the store's folder
	f        *os.File
	sum      hash.Hash
	size     int64
	content  []byte // all of it, if it is small
	reserved int64  // bytes of the quota
}

// Put keeps what r has, to its end, and returns its name. It is durable but in the Cache, and read by nobody before.
// Content that is there already is read all the same, and stays for Limit.Keep from now on. Errors: ErrTooLarge
// beyond limit bytes, ErrFull, ErrBusy, ErrOwner, what reading returned, the context's. After an error nothing is
// kept.
func (s *Store) Put(ctx context.Context, at Place, r io.Reader, limit int64) (files.Blob, error) {
	w := incoming{s: s, at: at, limit: min(limit, files.MaxFile), sum: sha256.New()}
	if err := s.acquire(1); err != nil {
		return files.Blob{}, err
	}
	defer s.release(1)
	b, err := w.put(ctx, r)
	if err != nil {
		return files.Blob{}, fmt.Errorf("keep a file in %s: %w", at.Space, asFull(err))
	}
	return b, nil
}

func (w *incoming) put(ctx context.Context, r io.Reader) (b files.Blob, err error) {
	s := w.s
	if err = w.check(); err != nil {
		return b, err
	}
	w.name = newFolder + "/" + strconv.FormatUint(s.counter.Add(1), 10)
	if w.f, err = s.disk.create(w.name); err != nil {
		return b, err
	}
	if err = w.copy(ctx, r); err == nil && w.size == 0 {
		err = w.write(nil)
	}
	if err == nil {
		b.Size = w.size
		w.sum.Sum(b.Hash[:0])
		err = s.commit(key{w.at, b.Hash}, w.name, w.size, w.secure)
	}
	if err = errors.Join(err, w.f.Close()); err != nil {
		_ = s.disk.remove(w.name) // the next Open does it otherwise
		s.unreserve(w.at.Space, w.reserved)
	}
	return b, err
}

// secure makes what was written durable, and reports whether its name is, too.
func (w *incoming) secure(k key) (named bool, err error) {
	if w.at.Space == Cache {
		return false, nil
	}
	if w.content != nil && w.s.log.keep(k, w.content, w.s.now()) {
		return true, nil
	}
	return false, w.s.disk.sync(w.f)
}

func (w *incoming) check() error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.check(w.at)
}

func (w *incoming) copy(ctx context.Context, r io.Reader) error {
	pooled := buffers.Get().(*[copyBytes]byte) // it has nothing else
	defer buffers.Put(pooled)
	buf := pooled[:min(copyBytes, max(w.limit+1, 1))]
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if cause := w.write(buf[:n]); cause != nil {
				return cause
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read it: %w", err)
		}
	}
}

func (w *incoming) write(b []byte) error {
	size := w.size + int64(len(b))
	if size > w.limit {
		return fmt.Errorf("%w: %d bytes are the most", ErrTooLarge, w.limit)
	}
	if more := charge(size) - w.reserved; more > 0 {
		if err := w.s.makeRoom(w.at, more); err != nil {
			return err
		}
		w.reserved += more
	}
	_, _ = w.sum.Write(b) // never fails
	err := w.s.withRoom(int64(len(b)), func() error { return w.s.disk.writeAt(pointWrite, w.f, b, w.size) })
	if err != nil {
		return err
	}
	w.content = nil
	if w.size == 0 && len(b) <= logMost {
		w.content = append([]byte{}, b...)
	}
	w.size = size
	return nil
}

// commit has a file be a whole blob; its bytes count already. If the blob is there, the file goes, and so do its bytes.
// Otherwise secure makes the file durable if it has to be, and reports whether the blob's name is, too: then it is in
// the log. After an error the file is where it was (nowhere if the disk refuses that, too), and its bytes count.
func (s *Store) commit(k key, name string, size int64, secure func(key) (named bool, err error)) error {
	now := s.now()
	s.disk.touch(name, now)
	s.mu.Lock()
	at := slot{key: k}
	e := s.claim(at)
	if e != nil && !e.damaged {
		e.used = now
		s.settle(e)
		s.used[k.Space] -= charge(size)
		s.mu.Unlock()
		s.touch([]*entry{e})
		_ = s.disk.remove(name)
		return nil
	}
	if e != nil {
		s.evict(e) // who reads it has the old file open
	}
	s.mu.Unlock()
	named, err := secure(k)
	if err == nil {
		err = s.place(name, k, named)
	} else {
		err = errors.Join(err, s.removeWhole(k)) // a damaged one's, which counts no more
	}
	if named {
		s.log.placed()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.add(&entry{slot: at, size: size, used: now, put: now})
	}
	s.vacate(at)
	return err
}

// place renames a file to that of a whole blob, durably if need be and its name is not in the log, or undoes it.
func (s *Store) place(name string, k key, named bool) error {
	whole := fileOf(k)
	err := s.disk.rename(name, whole)
	if err == nil {
		if durable(whole) && !named {
			err = s.disk.syncFolder(folderOf(k))
		}
		if err == nil {
			return nil
		}
		if s.disk.rename(whole, name) == nil {
			return err
		}
	}
	return errors.Join(err, s.removeWhole(k)) // of a damaged one there is a file, too
}
