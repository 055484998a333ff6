package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/staging"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// maxFileMounts bounds the files with absolute paths that are mounted one by one; if there
// are more, the first process copies all of them.
const maxFileMounts = 64

// openRights are those on files of which nobody knows yet whose they will be: the image's
// user, by number or by name. Nobody gets past the folder above; the first process makes
// them its own.
func openRights() staging.Rights { return staging.Rights{File: 0o666, Program: 0o777, Folder: 0o777} }

// stage puts an attempt's files where its container finds them.
func (h *Handler) stage(w *work, o *box.Order) error {
	if len(w.Task.Files) == 0 {
		return nil
	}
	h.emitDoing(w, fmt.Sprintf("copying %d files", len(w.Task.Files)))
	ctx, cancel := h.abortable(w)
	defer cancel()
	var relative, absolute []executor.File
	for _, f := range w.Task.Files {
		if strings.HasPrefix(f.Path, "/") {
			absolute = append(absolute, f)
		} else {
			relative = append(relative, f)
		}
	}
	if err := staging.Put(ctx, box.WorkOf(w.dir), relative, openRights()); err != nil {
		return err
	}
	if o.Staged = len(relative) > 0; len(absolute) > 0 {
		if err := h.stageAbsolute(ctx, w, o, absolute); err != nil {
			return err
		}
	}
	return box.WriteOrder(w.dir, *o)
}

// stageAbsolute puts files with absolute paths into the attempt's folder, from which they
// are mounted or copied.
func (h *Handler) stageAbsolute(ctx context.Context, w *work, o *box.Order, files []executor.File) error {
	dir := filepath.Join(w.dir, box.Inputs)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var copies []executor.File
	for i, f := range files {
		name := strconv.Itoa(i)
		from := filepath.Join(dir, name)
		if len(files) <= maxFileMounts && isMountable(f) {
			from = f.Source
		} else {
			c := f
			c.Path = name
			copies = append(copies, c)
		}
		if len(files) <= maxFileMounts {
			w.files = append(w.files, engine.Mount{Type: "bind", Source: from, Target: f.Path, ReadOnly: true})
		} else {
			o.Place = append(o.Place, box.Placed{Name: name, Path: f.Path})
		}
	}
	if err := staging.Put(ctx, dir, copies, staging.Rights{File: 0o444, Program: 0o555, Folder: 0o755}); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
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
	defer h.life.Done()
	select {
	case <-w.isCleaned():
	case <-h.attempts.Quit:
		return // when it is adopted
	}
	if err := watchdog.RemoveTree(box.WorkOf(w.dir)); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("its working directory cannot be removed: files of another user? remove it as root")
	}
}
