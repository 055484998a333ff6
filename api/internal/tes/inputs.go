package tes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
)

const (
	// maxInline is how large a content may be that stands in the job; larger ones are put into the store.
	maxInline = 4 << 10
	// maxInlineSum bounds those of one job together, whose text has 1 MiB at most: as JSON one byte may be six.
	maxInlineSum = 64 << 10
)

// fetches reports whether inputs come from elsewhere, which may take long.
func (p *plan) fetches() bool {
	return slices.ContainsFunc(p.inputs, func(in placed) bool { return in.URL != "" || in.Root.Name != "" })
}

// bringer brings the inputs of one task into the store.
type bringer struct {
	put  func(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error)
	user string
	left int64 // bytes that the task may have more
}

func (t *Tasks) bringer(user string) *bringer { return &bringer{t.Broker.PutBlob, user, files.MaxTask} }

// store brings the inputs of a task into the store but for those behind URLs, and returns all in the words of a job's
// text.
func (b *bringer) store(ctx context.Context, p *plan) ([]map[string]any, error) {
	list := make([]map[string]any, 0, len(p.inputs)+1)
	for i := range p.inputs {
		in := map[string]any{"path": p.task.Inputs[i].Path}
		if err := b.storeOne(ctx, &p.inputs[i], p.task.Inputs[i].Type, in); err != nil {
			return nil, wordInput(i, err)
		}
		list = append(list, in)
	}
	return list, nil
}

func wordInput(i int, err error) error {
	if errors.Is(err, exports.ErrRefused) {
		return bad(fmt.Sprintf("inputs.%d.url", i), "%s", err.Error())
	}
	return fmt.Errorf("inputs.%d: %w", i, err)
}

func (b *bringer) storeOne(ctx context.Context, from *placed, kind string, in map[string]any) error {
	switch {
	case from.URL != "":
		in["url"] = from.URL
		return nil
	case from.Inline:
		in["content"] = from.Content
		return nil
	case from.Root.Name == "":
		return b.storeFile(ctx, strings.NewReader(from.Content), in)
	case kind == typeDirectory:
		return b.storeTree(ctx, from, in)
	}
	f, err := exports.OpenFile(from.Root, from.Rel)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Mode()&0o111 != 0 {
		in["executable"] = true
	}
	return b.storeFile(ctx, f, in)
}

// storeFile keeps a file and names it in an input.
func (b *bringer) storeFile(ctx context.Context, r io.Reader, in map[string]any) error {
	blob, err := b.keep(ctx, r)
	in["sha256"], in["size"] = blob.Hash.String(), blob.Size
	return err
}

// keep keeps what r has, as long as the task has no more bytes than one may.
func (b *bringer) keep(ctx context.Context, r io.Reader) (files.Blob, error) {
	blob, err := b.put(ctx, b.user, r, min(b.left, files.MaxFile))
	b.left -= blob.Size
	return blob, err
}

// errAbandoned has the writer of a manifest end when nobody reads it any more.
var errAbandoned = errors.New("the manifest is not kept")

// storeTree keeps the files of a folder and a manifest of them, which is written as it is kept: none of it is held in
// memory.
func (b *bringer) storeTree(ctx context.Context, from *placed, in map[string]any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := b.writeTree(ctx, from, w)
		_ = w.CloseWithError(err) // of a pipe it never fails
		wrote <- err
	}()
	blob, err := b.put(ctx, b.user, r, files.MaxManifest)
	cancel(errAbandoned)
	_ = r.CloseWithError(errAbandoned)
	if cause := <-wrote; cause != nil && !errors.Is(cause, errAbandoned) {
		return cause
	}
	in["manifest"], in["size"] = blob.Hash.String(), blob.Size
	return err
}

// writeTree keeps the files of a folder that do not stand in the manifest, and writes that.
func (b *bringer) writeTree(ctx context.Context, from *placed, to io.Writer) error {
	m := files.NewManifestWriter(to)
	err := exports.Tree(from.Root, from.Rel, func(rel string, f *os.File) error {
		e, err := b.entry(ctx, m, rel, f)
		if err == nil {
			err = wordEntry(from, m.Add(e))
		}
		return err
	})
	if err != nil {
		return err
	}
	return wordEntry(from, m.Close())
}

// wordEntry words why a file may not stand in a manifest.
func wordEntry(from *placed, err error) error {
	if err == nil || errors.Is(err, errAbandoned) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", exports.ErrRefused, from.Rel, err)
}

// entry returns the next entry of a manifest: a file that does not stand in it is kept.
func (b *bringer) entry(
	ctx context.Context, m *files.ManifestWriter, rel string, f *os.File,
) (e files.Entry, err error) {
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	st, err := f.Stat()
	if err != nil {
		return e, err
	}
	e = files.Entry{Path: rel, Executable: st.Mode()&0o111 != 0}
	begin, err := io.ReadAll(io.LimitReader(f, files.MaxInline+1))
	if err != nil {
		return e, err
	}
	if e.Size = int64(len(begin)); m.Inlines(e.Size) {
		b.left -= e.Size
		e.Inline, e.Hash = begin, files.HashOf(begin)
		return e, nil
	}
	blob, err := b.keep(ctx, io.MultiReader(bytes.NewReader(begin), f))
	e.Hash, e.Size = blob.Hash, blob.Size
	return e, err
}

// userOf returns who asks.
func userOf(ctx context.Context) string { return node.AskerOf(ctx).User }
