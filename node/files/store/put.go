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
	s     *Store
	at    Place
	limit int64
	sum   hash.Hash
	size  int64
	// short is all of the content if that fits into one buffer: it is written once it is known not to be there already.
	short    []byte
	name     string   // below the store's folder
	f        *os.File // nil: nothing was written, or all is
	written  int64
	reserved int64 // bytes of the quota
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
	if err = w.check(); err != nil {
		return b, err
	}
	buf := buffers.Get().(*[copyBytes]byte) // it has nothing else
	defer buffers.Put(buf)
	defer func() { _ = w.close() }() // secure has told of it, or nobody wants it
	there := false
	if err = w.copy(ctx, r, buf[:min(copyBytes, max(w.limit+1, 1))]); err == nil {
		b.Size = w.size
		w.sum.Sum(b.Hash[:0])
		there, err = w.s.renew(key{w.at, b.Hash})
	}
	if err == nil && !there {
		err = w.keep(key{w.at, b.Hash})
	}
	if err != nil || there {
		w.undo()
	}
	return b, err
}

func (w *incoming) check() error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.check(w.at)
}

// copy hashes all that r has, and writes it unless it is short.
func (w *incoming) copy(ctx context.Context, r io.Reader, buf []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, buf)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return fmt.Errorf("read it: %w", err)
		}
		if w.size += int64(n); w.size > w.limit {
			return fmt.Errorf("%w: %d bytes are the most", ErrTooLarge, w.limit)
		}
		_, _ = w.sum.Write(buf[:n]) // never fails
		if ended && w.f == nil {
			w.short = buf[:n]
			return nil
		}
		if err := w.write(buf[:n]); err != nil || ended {
			return err
		}
	}
}

// write appends to the file, which it makes before.
func (w *incoming) write(b []byte) (err error) {
	if w.f == nil {
		if w.name, w.f, err = w.s.createNew(); err != nil {
			return err
		}
	}
	if more := charge(w.written+int64(len(b))) - w.reserved; more > 0 {
		if err = w.s.makeRoom(w.at, more); err != nil {
			return err
		}
		w.reserved += more
	}
	err = w.s.withRoom(int64(len(b)), func() error { return w.s.disk.writeAt(pointWrite, w.f, b, w.written) })
	if err != nil {
		return err
	}
	w.written += int64(len(b))
	return nil
}

// createNew makes a file of a name that no other has: what is in newFolder goes with the next Open.
func (s *Store) createNew() (name string, f *os.File, err error) {
	name = newFolder + "/" + strconv.FormatUint(s.counter.Add(1), 10)
	f, err = s.disk.create(name)
	return name, f, err
}

// keep has the content be a whole blob.
func (w *incoming) keep(k key) error {
	if w.f == nil {
		if err := w.write(w.short); err != nil {
			return err
		}
	}
	return w.s.commit(k, w.name, w.size, w.secure)
}

// secure ends the file, makes it durable if it has to be, and reports whether its name is, too.
func (w *incoming) secure(k key) (named bool, err error) {
	if w.at.Space != Cache {
		named = w.short != nil && len(w.short) <= logMost && w.s.log.keep(k, w.short, w.s.now())
		if !named {
			err = w.s.disk.sync(w.f)
		}
	}
	return named, errors.Join(err, w.close())
}

// close closes the file if it is open.
func (w *incoming) close() (err error) {
	if w.f != nil {
		err = w.f.Close()
		w.f = nil
	}
	return err
}

// undo removes what was written.
func (w *incoming) undo() {
	if w.name != "" {
		_ = w.s.disk.remove(w.name) // the next Open does it otherwise
	}
	w.s.unreserve(w.at.Space, w.reserved)
}

// renew reports whether a blob is there, durably but in the Cache, and has it stay for Limit.Keep from now on. It waits
// for who is about to put it there, and until what Open has found is durable.
func (s *Store) renew(k key) (there bool, err error) {
	s.mu.Lock()
	s.await(slot{key: k})
	e := s.entries[slot{key: k}]
	if there = e != nil && !e.damaged; there {
		e.used = s.now()
		s.settle(e)
	}
	s.mu.Unlock()
	if !there {
		return false, nil
	}
	s.touch([]*entry{e})
	return true, s.vouch(k)
}

// vouch waits until a blob that is there is durable, if it has to be.
func (s *Store) vouch(k key) error {
	if k.Space == Cache {
		return nil
	}
	return s.log.wait()
}

// commit has a file be a whole blob; its bytes count already. If the blob is there, the file goes, and so do its bytes:
// somebody has put it in the meantime, durably, or the caller has asked vouch.
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
