package stagein

import (
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Repin pins the files of an attempt that an earlier life of the broker has started. What cannot be read is left out.
func (s *Stager) Repin(a *attempts.Record) {
	at, _, err := s.place(a.ID)
	if err != nil || at.Space == store.Own { // those of own jobs are pinned by their jobs
		return
	}
	var refs []store.Ref
	for _, b := range a.Inputs {
		refs = append(refs, store.Ref{Place: at, Hash: b.Hash})
		in := jobspec.Input{From: b.From, Blob: b.Blob}
		if b.From != jobspec.FromDirectory && b.From != jobspec.FromEach {
			continue
		}
		_ = s.walkManifest(at, &in, func(i uint32, e files.Entry) error {
			if e.Inline == nil && (b.From == jobspec.FromDirectory || i == a.Index) {
				refs = append(refs, store.Ref{Place: at, Hash: e.Hash})
			}
			return nil
		})
	}
	s.cfg.Store.Pin(pinOf(a.ID), refs...)
}
