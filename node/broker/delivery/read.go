package delivery

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// finalError is what no repetition changes: the outputs are lost, or not what their job requires.
type finalError struct {
	error
	failed bool
}

func final(err error) error { return &finalError{error: err} }

// Unwrap returns what is final.
func (e *finalError) Unwrap() error { return e.error }

// read reads a manifest that has come: strictly, for another site wrote it.
func (r *round) read(f *fetched) {
	if f.err != nil {
		return
	}
	s, err := r.cfg.Store.Open(f.at, f.Output.Manifest)
	if err != nil {
		f.err = err
		return
	}
	defer s.Close()
	check, err := newCheck(f.Outputs)
	if err != nil {
		f.err = final(err)
		return
	}
	m := files.NewManifestReader(s)
	for e, err := range m.All() {
		if isForeign(err) {
			err = final(fmt.Errorf("its site's list of them is none: %w", err))
		}
		if f.err = err; err != nil {
			return
		}
		if f.err = check.see(&e); f.err != nil {
			return
		}
	}
	f.err = f.judge(m.Sum(), check)
}

// isForeign reports whether a manifest is what is wrong, not the disk that it is read from.
func isForeign(err error) bool {
	for _, bad := range []error{
		files.ErrManifest, files.ErrPath, files.ErrOverlap, files.ErrSize, files.ErrTooMany, files.ErrHash,
	} {
		if errors.Is(err, bad) {
			return true
		}
	}
	return false
}

// judge says whether a manifest is what its site said of it, and what the job requires.
func (f *fetched) judge(sum int64, c *check) error {
	f.blobs = c.blobs
	if sum != f.Output.Bytes {
		return final(fmt.Errorf("its site said that they have %d bytes, and lists %d", f.Output.Bytes, sum))
	}
	for i, seen := range c.seen {
		if !seen {
			return &finalError{fmt.Errorf("no file %s is among its outputs, and its job requires one", f.Outputs.Paths[i]), true}
		}
	}
	return nil
}

// check sees the files of a manifest.
type check struct {
	globs []executor.Glob // those that are required, then the optional ones
	seen  []bool          // whether a file of the required glob is there
	blobs []files.Blob
	known map[files.Hash]bool
}

func newCheck(want jobspec.Outputs) (*check, error) {
	c := &check{seen: make([]bool, len(want.Paths)), known: map[files.Hash]bool{}}
	for _, list := range [][]string{want.Paths, want.Optional} {
		for _, text := range list {
			g, err := executor.ParseGlob(text)
			if err != nil {
				return nil, err
			}
			c.globs = append(c.globs, g)
		}
	}
	return c, nil
}

// see takes a file, if its job names it: whoever fetches gets all that is kept, and a site that ran a task may not
// choose what else stands beside it.
func (c *check) see(e *files.Entry) error {
	named := false
	for i, g := range c.globs {
		if !g.Match(e.Path) {
			continue
		}
		if named = true; i < len(c.seen) {
			c.seen[i] = true
		}
	}
	if !named {
		return final(fmt.Errorf("it lists %.100q, which no output of its job names", e.Path))
	}
	if e.Inline == nil && !c.known[e.Hash] {
		c.known[e.Hash] = true
		c.blobs = append(c.blobs, e.Blob())
	}
	return nil
}
