package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/staging"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// keptFolder is below the handler's folder: it has the work folders of ended attempts whose
// outputs are wanted, by their names. One that is being moved there ends with partly.
const (
	keptFolder = "kept"
	partly     = ".part"
)

// mostMoved bounds the names that are moved out of a sandbox's work folder one by one;
// if there are more, the folder itself is moved, and the sandbox serves nobody any more.
const mostMoved = 1000

// workPath returns where an ended attempt's work folder is.
func (h *Handler) workPath(name string) string { return filepath.Join(h.cfg.Dir, keptFolder, name) }

// keepWork moves the work folder of an attempt that has ended to its place, before its slot
// is given another one. What cannot be moved is lost with its slot, which serves nobody any
// more.
func (h *Handler) keepWork(s *slot, t *executor.Task, e *ended) {
	if !t.Outputs.Kept(e.Result) {
		return
	}
	spent, err := h.moveWork(s, e.Name)
	if err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", e.Name).Msg("the files of an ended attempt cannot be kept")
		spent = true
	}
	if spent {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.spent = true
	}
}

// keepCurrent keeps that of the attempt that the slot has, of which its supervisor has told the end.
func (h *Handler) keepCurrent(s *slot, e *ended) {
	h.mu.Lock()
	w := s.current
	mine := w != nil && w.Name == e.Name
	var t executor.Task
	if mine {
		t = w.Task
	}
	h.mu.Unlock()
	if mine {
		h.keepWork(s, &t, e)
	}
}

// keepLast keeps that of the last attempt of an adopted slot: those before it left nothing there, since their slot is
// given another one only after that.
func (h *Handler) keepLast(s *slot, works []*work) {
	if len(works) == 0 {
		return
	}
	if w := works[len(works)-1]; w.Ended != nil && !w.Forgotten {
		h.keepWork(s, &w.Task, &ended{Name: w.Name, Result: w.Ended.Result})
	}
}

// moveWork moves a slot's work folder, or what it holds. It goes on with what an earlier
// broker has begun. spent: the slot cannot be used any more.
func (h *Handler) moveWork(s *slot, name string) (spent bool, err error) {
	to, from := h.workPath(name), filepath.Join(s.dir, sandbox.WorkFolder)
	if _, err = os.Lstat(to); err == nil {
		return false, nil
	}
	if err = h.aside.Folder(filepath.Dir(to)); err != nil {
		return false, err
	}
	// Its task may have taken the right to write it from its owner, whom it takes to rename it.
	if err = os.Chmod(from, 0o700); err != nil {
		return false, err
	}
	_, begun := os.Lstat(to + partly)
	if begun != nil && (!s.contained || hasMany(from)) {
		return s.contained, h.moveFolder(s, from, to)
	}
	if begun != nil {
		if err = os.Mkdir(to+partly, 0o700); err != nil {
			return false, err
		}
	}
	if err = moveEntries(from, to+partly); err != nil {
		return false, err
	}
	return false, os.Rename(to+partly, to)
}

// moveFolder moves the folder itself, and makes another one unless it was mounted.
func (h *Handler) moveFolder(s *slot, from, to string) error {
	if err := os.Rename(from, to); err != nil || s.contained {
		return err
	}
	return os.Mkdir(from, 0o700)
}

// hasMany reports whether a folder has more names than are moved one by one.
func hasMany(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	n := 0
	for _, err = range watchdog.Names(f) {
		if n++; err != nil || n > mostMoved {
			return err == nil
		}
	}
	return false
}

// moveEntries moves what a folder holds into another one.
func moveEntries(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(from, e.Name())
		err = os.Rename(path, filepath.Join(to, e.Name()))
		if errors.Is(err, os.ErrPermission) && e.IsDir() { // only who may write in a folder may move it
			if err = os.Chmod(path, 0o700); err == nil {
				err = os.Rename(path, filepath.Join(to, e.Name()))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Collect implements executor.Collector.
func (h *Handler) Collect(ctx context.Context, id executor.ID, want executor.Outputs, sink executor.OutputSink) error {
	w, err := h.attempts.EndedOne(id)
	if err != nil {
		return fmt.Errorf("collect outputs of %s: %w", id, err)
	}
	if w.Task.Outputs.Kept(w.Ended.Result) && want.Kept(w.Ended.Result) {
		err = staging.Collect(ctx, h.workPath(w.Name), want, h.ownerOf(w.Task), sink)
	}
	if err != nil {
		return fmt.Errorf("collect outputs of %s: %w", id, err)
	}
	return nil
}

// ownerOf returns the user of a task's files. A user's own tasks may do with their files
// what it may; those that root has started for others may have a second name of root's.
func (h *Handler) ownerOf(t executor.Task) int {
	if h.contains(t) {
		return h.contain.plan.UID
	}
	return staging.AnyOwner
}

// dropWork removes the work folder of a forgotten attempt.
func (h *Handler) dropWork(name string) {
	for _, path := range []string{h.workPath(name), h.workPath(name) + partly} {
		if err := watchdog.RemoveTree(path); err != nil {
			h.aside.Put(path, err)
		}
	}
}

// strayWorks returns the names of kept work folders that nobody waits for any more: a
// crash came before they were removed. REQUIRES: h.mu held.
func (h *Handler) strayWorks() (stray []string) {
	entries, err := os.ReadDir(filepath.Join(h.cfg.Dir, keptFolder))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), partly)
		if w := h.attempts.Get(name); w == nil || w.Forgotten {
			stray = append(stray, name)
		}
	}
	return stray
}
