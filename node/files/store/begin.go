package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/cloudshare/cloudshare/node/files"
)

// Begin returns a blob of a place to be filled, by one at a time. It reserves the blob's bytes, or resumes what is
// there of it; a blob that is there whole lacks no pieces. Errors: ErrFull, ErrBusy, ErrOwner, files.ErrSize, and
// ErrWrongHash if the blob is there and has another size.
func (s *Store) Begin(at Place, b files.Blob) (*Partial, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := s.acquire(partialFiles); err != nil {
		return nil, err
	}
	p, err := s.begin(key{at, b.Hash}, b.Size)
	if err != nil || p.done {
		s.release(partialFiles)
	}
	if err != nil {
		return nil, wrap("begin", key{at, b.Hash}, err)
	}
	return p, nil
}

// partialFiles is how many files a partial blob has open at most.
const partialFiles = 2

func (s *Store) begin(k key, size int64) (*Partial, error) {
	for {
		whole, e, err := s.claimPartial(k, size)
		switch {
		case err != nil:
			return nil, err
		case whole != nil:
			s.touch([]*entry{whole})
			return &Partial{s: s, e: whole, done: true}, nil
		case e.gone: // it was of another size
			if err = s.discard([]*entry{e}); err != nil {
				return nil, err
			}
		case e.holds == 0: // it is new
			return s.beginNew(e)
		default:
			p, err := s.resume(e)
			if err == nil {
				return p, nil
			}
			if !errors.Is(err, errRows) {
				s.unhold(e)
				return nil, err
			}
			s.mu.Lock()
			s.evict(e)
			s.mu.Unlock()
			if err = s.discard([]*entry{e}); err != nil {
				return nil, err
			}
		}
	}
}

// claimPartial returns the whole blob, or the partial one: held, evicted since its size is another one, or new and not
// in the index yet, its slot being the caller's.
func (s *Store) claimPartial(k key, size int64) (whole, e *entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = s.check(k.Place); err != nil {
		return nil, nil, err
	}
	e = s.claim(slot{k, true})
	whole = s.entries[slot{key: k}]
	if whole != nil && !whole.damaged {
		if e == nil {
			s.vacate(slot{k, true})
		}
		if whole.size != size {
			return nil, nil, fmt.Errorf("%w: it is there, and has %d bytes instead of %d", ErrWrongHash, whole.size, size)
		}
		whole.used = s.now()
		s.settle(whole)
		return whole, nil, nil
	}
	switch {
	case e == nil:
		return nil, &entry{slot: slot{k, true}, size: size, used: s.now()}, nil
	case e.holds > 0:
		return nil, nil, fmt.Errorf("%w: another one fills it", ErrBusy)
	case e.size != size:
		s.evict(e)
	default:
		e.holds++
		s.settle(e)
	}
	return nil, e, nil
}

// beginNew reserves room for a partial blob and makes its files. The slot is the caller's, and vacant behind.
func (s *Store) beginNew(e *entry) (p *Partial, err error) {
	if err = s.makeRoom(e.Place, charge(e.size)); err == nil {
		err = s.withRoom(charge(e.size), func() (err error) {
			p, err = s.createPartial(e)
			return err
		})
		if err != nil {
			_ = s.removeFiles(e.slot) // the next Open does it otherwise
			s.unreserve(e.Space, charge(e.size))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		e.holds = 1
		s.add(e)
	}
	s.vacate(e.slot)
	return p, err
}

// createPartial makes the files of a partial blob, in the place of what could not be removed before.
func (s *Store) createPartial(e *entry) (*Partial, error) {
	p, err := s.tryCreatePartial(e)
	if !errors.Is(err, os.ErrExist) {
		return p, err
	}
	if err = s.removeFiles(e.slot); err != nil {
		return nil, err
	}
	return s.tryCreatePartial(e)
}

// unallocated is up to how many bytes a blob of one piece gets no room on the disk before it is written, which is a
// ninth of its time in the cache: it comes at once, and its writing tells as soon whether the disk is full.
const unallocated = 64 << 10

// tryCreatePartial makes the files of a partial blob. The error is os.ErrExist if there is one of them.
func (s *Store) tryCreatePartial(e *entry) (p *Partial, err error) {
	name := fileOf(e.key)
	p = &Partial{s: s, e: e, states: make([]byte, s.pieceCount(e.size)), sum: sha256.New()}
	if p.f, err = s.disk.create(name + partExt); err == nil && (len(p.states) > 1 || e.size > unallocated) {
		err = s.disk.allocate(p.f, e.size)
	}
	if err == nil && len(p.states) > 1 {
		if p.rows, err = s.disk.create(name + rowsExt); err == nil {
			err = s.disk.writeAt(pointRow, p.rows, s.encodeRows(e.size), 0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.closeFiles())
	}
	return p, nil
}

// errRows reports a partial blob whose files do not say what is there of it.
var errRows = errors.New("rows do not belong to the partial blob")

// resume opens the files of a partial blob that the caller holds.
func (s *Store) resume(e *entry) (p *Partial, err error) {
	name := fileOf(e.key)
	p = &Partial{s: s, e: e, sum: sha256.New()}
	if p.f, err = s.disk.open(name+partExt, os.O_RDWR); err == nil {
		p.rows, err = s.disk.open(name+rowsExt, os.O_RDWR)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = errRows
	}
	if err == nil {
		var ok bool
		if p.states, ok = s.loadRows(p.rows, p.f, e.size); !ok {
			err = errRows
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.closeFiles())
	}
	for i, state := range p.states {
		if state == pieceWritten {
			p.unsynced = append(p.unsynced, i)
		}
	}
	return p, nil
}
