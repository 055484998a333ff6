// Package store keeps the bytes of files that travel with tasks (steps 1 and 6 of a job's way) as blobs: immutable,
// each in a file of its own that is named by its hash. What a live job or attempt names is pinned, and stays; the
// rest goes by its space's rule. It imports package files and nothing of the broker.
//
//	s, err := store.Open(store.Options{Dir: dir, Now: time.Now, ...})
//	missing := s.Repin(pins)                  // what the journal's live jobs name
//	b, err := s.Put(ctx, at, upload, limit)   // hashed while it is written
//	p, err := s.Begin(at, b)                  // or filled in pieces, in any order, and resumed
//	r, err := s.Open(at, b.Hash)
package store
