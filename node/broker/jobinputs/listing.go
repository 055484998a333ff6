package jobinputs

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// tree is a manifest of a user of this site, and so what it names.
type tree struct {
	user     string
	manifest files.Hash
}

// listing is what a manifest names.
type listing struct {
	tree
	kept  bool     // by the book, and nothing else is known here
	size  int64    // bytes of the manifest itself
	paths []string // of all its files, in its order
	// blobs are those that do not stand in the manifest, each once, and firsts where in paths they come first.
	blobs        []files.Blob
	firsts       []int
	sum, largest int64 // bytes of all files, and of the largest
	laid         *layout
}

// read reads a manifest of the store, and its blobs' sizes: those that are not there or have other sizes are an error,
// in words. It reads most files at most.
func read(s *store.Store, t tree, most int) (*listing, error) {
	at := store.OwnOf(t.user)
	r, err := s.Open(at, t.manifest)
	if err != nil {
		return nil, wordsOf(t.manifest, err)
	}
	defer r.Close()
	l := &listing{tree: t, size: r.Size()}
	seen := map[files.Hash]bool{}
	m := files.NewManifestReader(r)
	for e, err := range m.All() {
		if err != nil {
			return nil, wordsOf(t.manifest, err)
		}
		if len(l.paths) == most {
			return nil, errTooMany(most)
		}
		l.add(&e, seen)
	}
	l.sum = m.Sum()
	return l, nil
}

// errTooMany is of what a call or all live jobs may name.
func errTooMany(most int) error {
	return fmt.Errorf("%w: jobs that have not ended name %d files in directories already, with those of this request: "+
		"submit it when some have ended", node.ErrFull, most)
}

func (l *listing) add(e *files.Entry, seen map[files.Hash]bool) {
	l.paths = append(l.paths, e.Path)
	l.largest = max(l.largest, e.Size)
	if e.Inline == nil && !seen[e.Hash] {
		seen[e.Hash] = true
		l.blobs = append(l.blobs, e.Blob())
		l.firsts = append(l.firsts, len(l.paths)-1)
	}
}

// check returns in words which blob is not in the store as the manifest says. The others stay there for a day.
func (l *listing) check(s *store.Store) error {
	hashes := make([]files.Hash, len(l.blobs))
	for i := range l.blobs {
		hashes[i] = l.blobs[i].Hash
	}
	for i, size := range s.Sizes(store.OwnOf(l.user), hashes...) {
		b, path := l.blobs[i], l.paths[l.firsts[i]]
		switch {
		case size < 0:
			return notHere("names %q, and its blob %s is not here: send it first", path, b.Hash)
		case size != b.Size:
			return fmt.Errorf("says that %q has %d bytes, and its blob %s has %d", path, b.Size, b.Hash, size)
		}
	}
	return nil
}

// notHereError says what has to be sent.
type notHereError string

// Error implements error.
func (e notHereError) Error() string { return string(e) }

func notHere(format string, args ...any) error { return notHereError(fmt.Sprintf(format, args...)) }

// wordsOf says why a blob cannot be used, or has others try again.
func wordsOf(h files.Hash, err error) error {
	switch {
	case errors.Is(err, store.ErrUnknown):
		return notHere("%s is not here: send it first", h)
	case errors.Is(err, store.ErrDamaged):
		return notHere("%s is damaged here: send it again", h)
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrClosed):
		return fmt.Errorf("look for files of a job: %w: %w", node.ErrNotReady, err)
	}
	return fmt.Errorf("%s is not one: %w", h, err)
}
