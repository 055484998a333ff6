package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Adopt implements executor.Handler: attempts are found by their folders, so it
// needs no cluster. One without an end is taken for running until the cluster says
// what it knows; Jobs of ours without a folder are removed.
func (h *Handler) Adopt(ctx context.Context) ([]executor.State, error) {
	if err := books.EachFolder(ctx, h.aside, h.path("attempts"), "attempt", h.adoptOne); err != nil {
		return nil, err
	}
	h.mu.Lock()
	states, err := h.book.Adopted()
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h.listen()
	return states, books.FirstLook(ctx, h.looked)
}

// adoptOne reads an attempt's folder.
func (h *Handler) adoptOne(name string) error {
	dir := h.path("attempts", name)
	var m memo
	err := readJSON(filepath.Join(dir, taskFile), &m)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EIO) {
		return err // somebody may want to look; its Job, if it has one, is removed
	}
	if err != nil || m.Task.ID.String() != name || !books.ValidName(name) {
		return watchdog.RemoveTree(dir) // a crash before it was whole: no Job was made
	}
	w := h.newWork(books.AdoptedAttempt(m.Task))
	w.image, w.since, w.adopted, w.made = m.Image, m.Since, true, true
	h.adoptLease(w, m)
	var e kept
	err = readJSON(filepath.Join(dir, endFile), &e)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, books.ErrTorn) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byJob[w.job] = w
	h.book.Enter(w)
	if err != nil { // it has not ended
		_ = readJSON(filepath.Join(dir, letFile), &w.let) // without it none was, but for a power failure
		if readJSON(filepath.Join(dir, beganFile), &w.began) == nil {
			w.Began = w.began
			close(w.running)
		}
		h.held[w.Task.Machine] = plus(h.held[w.Task.Machine], w.Task.Need)
		return nil
	}
	w.Ended, w.NoOutput = &e.End, e.NoOutput
	close(w.Done)
	if e.Forgotten {
		h.book.Keep(w)
	}
	return nil
}

// maxFile bounds what is read of an attempt's folder.
const maxFile = 16 << 20

func readJSON(path string, into any) error { return books.ReadNote(path, maxFile, into) }

// writeFile writes one of the files of an attempt's folder that change.
func writeFile(dir, name string, v any) error { return books.WriteNote(filepath.Join(dir, name), v) }
