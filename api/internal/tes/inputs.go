package tes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// maxInline is how large a content may be that stands in the job; larger ones are put into the store.
	maxInline = 4 << 10
	// importWait is for how long a request waits until what stands behind URLs has come.
	importWait = 5 * time.Minute
	importLook = 200 * time.Millisecond
)

// fetches reports whether inputs come from elsewhere, which may take long.
func (p *plan) fetches() bool {
	return slices.ContainsFunc(p.inputs, func(in placed) bool { return in.URL != "" || in.Root.Name != "" })
}

// store brings the inputs of a task into the store, and returns them in the words of a job's text.
func (t *Tasks) store(ctx context.Context, p *plan, user string) ([]map[string]any, error) {
	list := make([]map[string]any, 0, len(p.inputs)+1)
	for i := range p.inputs {
		in := map[string]any{"path": p.task.Inputs[i].Path}
		if err := t.storeOne(ctx, &p.inputs[i], p.task.Inputs[i].Type, user, in); err != nil {
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

func (t *Tasks) storeOne(ctx context.Context, from *placed, kind, user string, in map[string]any) error {
	switch {
	case from.URL != "":
		in["url"] = from.URL
		return nil
	case from.Root.Name == "" && len(from.Content) <= maxInline:
		in["content"] = from.Content
		return nil
	case from.Root.Name == "":
		return t.put(ctx, user, strings.NewReader(from.Content), "sha256", in)
	case kind == typeDirectory:
		return t.putTree(ctx, user, from, in)
	}
	f, err := exports.OpenFile(from.Root, from.Rel)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Mode()&0o111 != 0 {
		in["executable"] = true
	}
	return t.put(ctx, user, f, "sha256", in)
}

// put keeps bytes for a user and names them in a field of an input.
func (t *Tasks) put(ctx context.Context, user string, r io.Reader, field string, in map[string]any) error {
	blob, err := t.Broker.PutBlob(ctx, user, r, files.MaxFile)
	if err == nil {
		in[field], in["size"] = blob.Hash.String(), blob.Size
	}
	return err
}

// putTree keeps the files of a folder, and a manifest of them.
func (t *Tasks) putTree(ctx context.Context, user string, from *placed, in map[string]any) error {
	var list []files.Entry
	err := exports.Tree(from.Root, from.Rel, func(rel string, f *os.File) error {
		if len(list) == files.MaxEntries {
			return fmt.Errorf("%w: it has more than %d files", exports.ErrRefused, files.MaxEntries)
		}
		st, err := f.Stat()
		if err != nil {
			return err
		}
		e := files.Entry{Path: rel, Executable: st.Mode()&0o111 != 0}
		if st.Size() <= files.MaxInline {
			if e.Inline, err = io.ReadAll(io.LimitReader(f, files.MaxInline+1)); err != nil {
				return err
			}
			e.Size, e.Hash = int64(len(e.Inline)), files.HashOf(e.Inline)
		}
		if e.Inline == nil || e.Size > files.MaxInline {
			if _, err = f.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		blob, err := t.Broker.PutBlob(ctx, user, readerOf(f, &e), files.MaxFile)
		e.Hash, e.Size = blob.Hash, blob.Size
		list = append(list, e)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b files.Entry) int { return files.ComparePaths(a.Path, b.Path) })
	text, err := manifest(list)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", exports.ErrRefused, from.Rel, err)
	}
	return t.put(ctx, user, strings.NewReader(text), "manifest", in)
}

// readerOf returns what a file has: small ones have been read.
func readerOf(f *os.File, e *files.Entry) io.Reader {
	if e.Inline != nil && e.Size <= files.MaxInline {
		return strings.NewReader(string(e.Inline))
	}
	return f
}

// manifest writes entries, with the contents where they belong.
func manifest(list []files.Entry) (string, error) {
	var b strings.Builder
	w := files.NewManifestWriter(&b)
	for i := range list {
		if !w.Inlines(list[i].Size) {
			list[i].Inline = nil
		} else if list[i].Inline == nil {
			list[i].Inline = []byte{}
		}
		if err := w.Add(list[i]); err != nil {
			return "", err
		}
	}
	err := w.Close()
	return b.String(), err
}

// await waits until what stands behind the URLs of a job has come, or does not.
func (t *Tasks) await(ctx context.Context, spec *jobspec.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	look := time.NewTicker(importLook)
	defer look.Stop()
	for {
		err := t.Resolve(ctx, spec)
		var p *problem.Problem
		if err == nil || !errors.As(err, &p) || !isUnderWay(p) {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return err
		}
	}
}

// isUnderWay reports whether a problem is that a file is on its way.
func isUnderWay(p *problem.Problem) bool { return strings.HasSuffix(p.Type, ":import-under-way") }

// userOf returns who asks.
func userOf(ctx context.Context) string { return node.AskerOf(ctx).User }
