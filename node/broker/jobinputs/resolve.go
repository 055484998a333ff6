package jobinputs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Call is the requests of one call. It is not safe for concurrent use.
type Call struct {
	store *store.Store
	left  int // how many files more its manifests may name
	most  int
	known map[tree]*known
	apart map[nesting]bool // of nested directories: whether they overlap
}

// known is what became of reading a manifest.
type known struct {
	*listing
	err error
}

// Begin returns a call: what it finds stays in the store for a day at least.
func (b *Book) Begin() *Call {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return &Call{
		store: b.store, most: b.most, left: max(b.most-b.named, 0),
		known: map[tree]*known{}, apart: map[nesting]bool{},
	}
}

// Found is what a spec names, for Keep.
type Found struct {
	user   string
	direct []files.Hash // manifests, too
	trees  []*listing
}

// Resolve looks up what a spec names in its user's part of the store. It fills in sizes, and how many bytes the files
// of a task have at most. Errors: *node.InputError for what the user can mend; node.ErrFull, node.ErrNotReady for what
// waiting can.
func (c *Call) Resolve(user string, s *jobspec.Spec) (*Found, error) {
	s.Inputs = slices.Clone(s.Inputs)
	s.FileBytes = 0
	found, entries, listings := &Found{user: user}, 0, make([]*listing, len(s.Inputs))
	for i := range s.Inputs {
		bytes, err := c.resolve(found, s, i, listings)
		if err != nil {
			return nil, err
		}
		entries++
		if l := listings[i]; l != nil {
			entries += len(l.paths) - 1
		}
		if s.FileBytes += bytes; s.FileBytes > files.MaxTask {
			return nil, refuse(i, "", "with those before it makes more than %d bytes for one task", int64(files.MaxTask))
		}
		if entries > files.MaxEntries {
			return nil, refuse(i, "", "with those before it makes more than %d files for one task", files.MaxEntries)
		}
	}
	return found, c.checkApart(s.Inputs, listings)
}

// refuse returns the error of an input, or of a field of it.
func refuse(i int, field, format string, args ...any) *node.InputError {
	name := fmt.Sprintf("inputs.%d", i)
	if field != "" {
		name += "." + field
	}
	return &node.InputError{Field: name, Reason: fmt.Sprintf(format, args...)}
}

// lacking is refuse of what is not here.
func lacking(i int, field, format string, args ...any) *node.InputError {
	e := refuse(i, field, format, args...)
	e.Missing = true
	return e
}

// resolve looks up one input, and returns how many bytes it is for each task.
func (c *Call) resolve(found *Found, s *jobspec.Spec, i int, listings []*listing) (bytes int64, err error) {
	in := &s.Inputs[i]
	switch in.From {
	case jobspec.FromContent:
		return int64(len(in.Content)), nil
	case jobspec.FromFile:
		return c.resolveBlob(found, in, i)
	case jobspec.FromURL:
		if in.Blob.Hash == (files.Hash{}) {
			return 0, lacking(i, "url", "has not been fetched")
		}
		return c.resolveBlob(found, in, i)
	case jobspec.FromDirectory:
		l, err := c.resolveManifest(found, in, i, "manifest")
		if err != nil {
			return 0, err
		}
		listings[i] = l
		return l.sum, nil
	case jobspec.FromEach:
		l, err := c.resolveManifest(found, in, i, "each")
		if err != nil {
			return 0, err
		}
		return l.largest, checkEach(s, i, len(l.paths))
	}
	return 0, refuse(i, "", "is of a kind that this broker does not know")
}

// resolveManifest looks up what a directory has, or each of the tasks gets.
func (c *Call) resolveManifest(found *Found, in *jobspec.Input, i int, field string) (*listing, error) {
	l, err := c.list(found.user, in.Blob.Hash)
	if errors.Is(err, node.ErrFull) || errors.Is(err, node.ErrNotReady) {
		return nil, err
	}
	if err != nil {
		refused := refuse(i, field, "%s", err)
		_, refused.Missing = errors.AsType[notHereError](err)
		return nil, refused
	}
	found.direct, found.trees = append(found.direct, in.Blob.Hash), append(found.trees, l)
	return l, setSize(in, i, l.size)
}

// resolveBlob looks up one file.
func (c *Call) resolveBlob(found *Found, in *jobspec.Input, i int) (bytes int64, err error) {
	size := c.store.Sizes(store.OwnOf(found.user), in.Blob.Hash)[0]
	if size < 0 {
		return 0, lacking(i, "sha256", "%s is not here: send it first", in.Blob.Hash)
	}
	found.direct = append(found.direct, in.Blob.Hash)
	return size, setSize(in, i, size)
}

// setSize fills the size of an input in; another one than it says is an error.
func setSize(in *jobspec.Input, i int, size int64) error {
	if in.Blob.Size != jobspec.UnknownSize && in.Blob.Size != size {
		return refuse(i, "size", "is %d, and %s has %d bytes", in.Blob.Size, in.Blob.Hash, size)
	}
	in.Blob.Size = size
	return nil
}

// checkEach returns what is wrong with an input of which each task gets one of n files.
func checkEach(s *jobspec.Spec, i, n int) error {
	var wrong *jobspec.SpecError
	if errors.As(s.CheckEach(i, n), &wrong) {
		return &node.InputError{Field: wrong.Field, Reason: wrong.Reason}
	}
	return nil
}

// list returns what a manifest names, all of which is in the store.
func (c *Call) list(user string, manifest files.Hash) (*listing, error) {
	t := tree{user, manifest}
	k := c.known[t]
	if k == nil {
		l, err := read(c.store, t, min(c.left, files.MaxEntries))
		if errors.Is(err, node.ErrFull) {
			return nil, errTooMany(c.most)
		}
		if err == nil {
			c.left -= len(l.paths)
			err = l.check(c.store)
		}
		k = &known{l, err}
		c.known[t] = k
	}
	return k.listing, k.err
}
