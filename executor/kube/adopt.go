package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Adopt implements executor.Handler: attempts are found by their folders, so it
// needs no cluster. One without an end is taken for running until the cluster says
// what it knows; Jobs of ours without a folder are removed.
func (h *Handler) Adopt(ctx context.Context) ([]executor.State, error) {
	if err := h.folders.Adopt(ctx, h.adoptOne); err != nil {
		return nil, err
	}
	h.works.mu.Lock()
	states, err := h.works.attempts.Adopted()
	h.works.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h.listen()
	return states, attempts.FirstLook(ctx, h.reach.looked)
}

// adoptOne reads an attempt's folder.
func (h *Handler) adoptOne(name string) error {
	dir := h.folders.Of(name)
	var m memo
	err := readJSON(filepath.Join(dir, taskFile), &m)
	if outputs.MayPass(err) {
		return err // somebody may want to look; its Job, if it has one, is removed
	}
	if err != nil || m.Task.ID.String() != name || !attempts.ValidName(name) {
		return watchdog.RemoveTree(dir) // a crash before it was whole: no Job was made
	}
	w := h.works.newWork(attempts.AdoptedAttempt(m.Task))
	w.image, w.since, w.adopted, w.made = m.Image, m.Since, true, true
	w.carried, w.files, w.in, w.disk = m.Carried, m.Files, m.In, m.Disk
	if err = h.leases.adopt(w, m); err != nil {
		return err
	}
	var e kept
	err = readJSON(filepath.Join(dir, endFile), &e)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, attempts.ErrTorn) {
		return err
	}
	hasEnded := err == nil
	if !hasEnded {
		if err = w.adoptRun(); err != nil {
			return err
		}
	}
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	h.works.byJob[w.job] = w
	h.works.attempts.Enter(w)
	if !hasEnded {
		h.offer.hold(w.Task)
		return nil
	}
	w.Ended, w.NoOutput = &e.End, e.NoOutput
	close(w.Done)
	if e.Forgotten {
		if w.carried {
			w.dropFiles(false)
		}
		h.works.attempts.Keep(w)
	}
	return nil
}

// adoptRun reads what an attempt without an end has come to. What is not there, or torn
// by a power failure, was not.
func (w *work) adoptRun() error {
	err := readJSON(filepath.Join(w.dir, letFile), &w.let)
	if outputs.MayPass(err) {
		return err
	}
	err = readJSON(filepath.Join(w.dir, beganFile), &w.began)
	if err == nil {
		w.Began = w.began
		close(w.running)
	}
	if outputs.MayPass(err) {
		return err
	}
	return nil
}

// maxFile bounds what is read of an attempt's folder.
const maxFile = 16 << 20

func readJSON(path string, into any) error { return attempts.ReadNote(path, maxFile, into) }

// writeFile writes one of the files of an attempt's folder that change.
func writeFile(dir, name string, v any) error { return attempts.WriteNote(filepath.Join(dir, name), v) }
