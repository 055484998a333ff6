package stagein

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// found is a file that a task is to find: a blob, or content.
type found struct {
	path       string
	blob       files.Blob
	content    []byte // if inline
	inline     bool
	executable bool
}

// bounds are what the files of a task may have together.
type bounds struct {
	bytes    int64
	files    int
	contents int64
}

// walk calls f for each file of an attempt, whose manifests are at a place. All that another site says is bounded.
func (s *Stager) walk(ctx context.Context, at store.Place, o *Order, b bounds, f func(found) error) error {
	var sum bounds
	count := func(x found) error {
		sum.files++
		if x.inline {
			sum.contents += int64(len(x.content))
			sum.bytes += int64(len(x.content))
		} else {
			sum.bytes += x.blob.Size
		}
		switch {
		case sum.files > b.files:
			return fault(inputs.Unfit, "it has more than %d files", b.files)
		case sum.contents > b.contents:
			return fault(inputs.Unfit, "its small files have more than %s together", sizeText(b.contents))
		case sum.bytes > b.bytes:
			return fault(inputs.Unfit, "its files have more than %s, which is what this site takes of others beside its "+
				"outputs (data.lend_max)", sizeText(max(b.bytes, 0)))
		case sum.files&1023 == 0 && ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return f(x)
	}
	for i := range o.Inputs {
		if err := s.walkInput(at, &o.Inputs[i], o.Index, count); err != nil {
			return err
		}
	}
	return nil
}

// walkInput calls f for each file of an input for the task of an index.
func (s *Stager) walkInput(at store.Place, in *jobspec.Input, index uint32, f func(found) error) error {
	switch in.From {
	case jobspec.FromContent:
		return f(found{path: in.Path, content: in.Content, inline: true, executable: in.Executable})
	case jobspec.FromFile, jobspec.FromURL:
		return f(found{path: in.Path, blob: in.Blob, executable: in.Executable})
	case jobspec.FromDirectory:
		return s.walkManifest(at, in, func(_ uint32, e files.Entry) error {
			x := foundOf(&e)
			x.path = path.Join(in.Path, e.Path)
			return f(x)
		})
	case jobspec.FromEach:
		var own *found
		err := s.walkManifest(at, in, func(i uint32, e files.Entry) error {
			if i == index {
				x := foundOf(&e)
				x.path, own = in.Path, &x
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case own == nil:
			return fault(inputs.Broken, "input %q has no file for the task of index %d", in.Path, index)
		}
		return f(*own)
	}
	return fault(inputs.Broken, "input %q is of a kind that this version does not know", in.Path)
}

func foundOf(e *files.Entry) found {
	return found{blob: e.Blob(), content: e.Inline, inline: e.Inline != nil, executable: e.Executable}
}

// walkManifest calls f for each entry of an input's manifest with its place in it.
func (s *Stager) walkManifest(at store.Place, in *jobspec.Input, f func(uint32, files.Entry) error) error {
	r, err := s.cfg.Store.Open(at, in.Blob.Hash)
	if err != nil {
		return lost(in, err)
	}
	defer r.Close()
	i := uint32(0)
	for e, err := range files.NewManifestReader(r).All() {
		if err != nil {
			if damaged := s.cfg.Store.Verify(at, in.Blob.Hash); damaged != nil {
				return lost(in, damaged)
			}
			return fault(inputs.Broken, "input %q: %w", in.Path, err)
		}
		if err = f(i, e); err != nil {
			return err
		}
		i++
	}
	return nil
}

// lost says that a blob of an input is not here any more.
func lost(in *jobspec.Input, err error) error { return fmt.Errorf("read input %q: %w", in.Path, err) }

// Files has start called with the files of an attempt: they are all here, or it is not called. Few are handed out at a
// time, for contents of small files are in memory. An *Error is this package's, others are start's.
func (s *Stager) Files(ctx context.Context, o Order, start func(fs []executor.File, bytes int64) error) error {
	if err := enter(ctx, s.handed); err != nil {
		return classify(ctx, err)
	}
	defer func() { <-s.handed }()
	fs, sum, err := s.files(ctx, &o)
	if err != nil {
		return classify(ctx, err)
	}
	return start(fs, sum)
}

func (s *Stager) files(ctx context.Context, o *Order) (fs []executor.File, sum int64, err error) {
	at, _, err := s.place(o.ID)
	if err != nil {
		return nil, 0, err
	}
	b := bounds{files: executor.MaxFiles, contents: maxContents, bytes: files.MaxTask}
	err = s.walk(ctx, at, o, b, func(x found) error {
		f := executor.File{Path: x.path, Executable: x.executable}
		if x.inline {
			f.Content, sum = x.content, sum+int64(len(x.content))
		} else {
			sum += x.blob.Size
			if f.Source, err = s.cfg.Store.Path(at, x.blob.Hash); err != nil {
				return fmt.Errorf("read file %q: %w", x.path, err)
			}
		}
		fs = append(fs, f)
		return nil
	})
	gone := errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrDamaged)
	switch {
	case gone && at.Space == store.Own: // nobody has them any more
		return nil, 0, fault(inputs.Broken, "%w: its bytes are gone from this site's store; submit it again", err)
	case err != nil:
		return nil, 0, err
	}
	if err = executor.CheckFiles(fs, o.Absolute); err != nil {
		return nil, 0, fault(inputs.Broken, "its files cannot stand together: %w", err)
	}
	return fs, sum, nil
}
