package store

import (
	"context"
	"errors"

	"github.com/cloudshare/cloudshare/node/files"
)

// Confirm reads those of a place's blobs once that were in the cache when a store was opened which nobody had closed:
// they were not synced, so their files may have the right size and not the right bytes. What is not as its hash says is
// known as damaged from then on, and missing. Blobs that are not there are no error. Errors: ErrBusy, the context's.
//
// It is for those who use a blob's Path: whoever reads to the end finds damage anyway.
func (s *Store) Confirm(ctx context.Context, at Place, hashes ...files.Hash) error {
	for _, h := range hashes {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !s.isUnsure(key{at, h}) {
			continue
		}
		switch err := s.Verify(at, h); {
		case err == nil:
			s.makeSure(key{at, h})
		case errors.Is(err, ErrDamaged), errors.Is(err, ErrUnknown):
		default:
			return err
		}
	}
	return nil
}

func (s *Store) isUnsure(k key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[slot{key: k}]
	return e != nil && e.unsure && !e.damaged
}

func (s *Store) makeSure(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[slot{key: k}]; e != nil {
		e.unsure = false
	}
}
