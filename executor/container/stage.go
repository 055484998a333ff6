package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/staging"
)

// stage puts an attempt's files where its container finds them.
func (h *Handler) stage(w *work, o *box.Order) error {
	if len(w.Task.Files) == 0 {
		return nil
	}
	h.emitDoing(w, fmt.Sprintf("copying %d files", len(w.Task.Files)))
	ctx, cancel := h.abortable(w)
	defer cancel()
	relative := slices.DeleteFunc(slices.Clone(w.Task.Files), isAbsolute)
	if err := staging.Put(ctx, box.WorkOf(w.dir), relative, staging.OpenRights()); err != nil {
		return err
	}
	if len(relative) > 0 {
		o.Staged = append(o.Staged, box.Work)
	}
	if rest := absolute(w.Task.Files); len(rest) > 0 {
		if err := h.stageAbsolute(ctx, w, o, rest); err != nil {
			return err
		}
	}
	return box.WriteOrder(w.dir, *o)
}

// copiedFiles returns those of an attempt's files that stage copies into its folder: it mounts the others.
func copiedFiles(files []executor.File) ([]executor.File, error) {
	p, err := placeFiles(absolute(files))
	if err != nil {
		return nil, err
	}
	copied := slices.DeleteFunc(slices.Clone(files), isAbsolute)
	for _, f := range p.folders {
		copied = append(copied, f.files...)
	}
	return append(copied, slices.DeleteFunc(p.single, isMountable)...), nil
}

func isAbsolute(f executor.File) bool { return strings.HasPrefix(f.Path, "/") }

// absolute returns the files with absolute paths.
func absolute(files []executor.File) []executor.File {
	return slices.DeleteFunc(slices.Clone(files), func(f executor.File) bool { return !isAbsolute(f) })
}

// stageAbsolute puts files with absolute paths into the attempt's folder, from which they
// or their folders are mounted.
func (h *Handler) stageAbsolute(ctx context.Context, w *work, o *box.Order, files []executor.File) error {
	w.root = box.Root + "-" + strings.ToLower(rand.Text())
	dir := filepath.Join(w.dir, box.Inputs)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	p, err := placeFiles(files)
	if err != nil {
		return err
	}
	for i, f := range p.folders {
		from := filepath.Join(dir, "folder-"+strconv.Itoa(i))
		if err = errors.Join(os.Mkdir(from, 0o700), os.Chmod(from, 0o777)); err != nil {
			return err
		}
		if err = staging.Put(ctx, from, f.files, staging.OpenRights()); err != nil {
			return err
		}
		o.Staged = append(o.Staged, f.path)
		w.files = append(w.files, engine.Mount{Type: "bind", Source: from, Target: f.path})
	}
	var copies []executor.File
	for i, f := range p.single {
		from := f.Source
		if !isMountable(f) {
			name := strconv.Itoa(i)
			from = filepath.Join(dir, name)
			c := f
			c.Path = name
			copies = append(copies, c)
		}
		w.files = append(w.files, engine.Mount{Type: "bind", Source: from, Target: f.Path, ReadOnly: true})
	}
	return staging.Put(ctx, dir, copies, staging.Rights{File: 0o444, Program: 0o555, Folder: 0o755})
}

// isMountable reports whether the broker's own file can be mounted, read-only: whatever
// user the container has may read it.
func isMountable(f executor.File) bool {
	const others = 0o004
	if f.Source == "" || f.Executable {
		return false
	}
	st, err := os.Lstat(f.Source)
	return err == nil && st.Mode().IsRegular() && st.Mode()&others != 0
}

// Collect implements executor.Collector.
func (h *Handler) Collect(ctx context.Context, id executor.ID, want executor.Outputs, sink executor.OutputSink) error {
	w, err := h.attempts.EndedOne(id)
	if err == nil && w.IsKept() && want.Kept(w.Ended.Result) {
		err = staging.Collect(ctx, box.WorkOf(w.dir), want, staging.AnyOwner, sink)
	}
	if err != nil {
		return fmt.Errorf("collect outputs of %s: %w", id, err)
	}
	return nil
}

// dropFiles removes the files of a forgotten attempt, once nothing is done about it any more.
func (h *Handler) dropFiles(w *work) {
	select {
	case <-w.isCleaned():
	case <-h.attempts.Quit:
		return // when it is adopted
	}
	h.removeWork(w)
}
