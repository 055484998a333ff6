package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Adopt implements executor.Handler: attempts are found by their folders, so it
// needs no engine. One whose end is not told is taken for running until the
// engine says what it knows.
func (h *Handler) Adopt(ctx context.Context) ([]executor.State, error) {
	if err := h.folders.Adopt(ctx, h.adoptOne); err != nil {
		return nil, err
	}
	states, err := h.adoptedAll()
	if err != nil {
		return nil, err
	}
	return states, attempts.FirstLook(ctx, h.presence.looked)
}

// adoptedAll opens the handler for Start, and attends to what runs.
func (h *Handler) adoptedAll() ([]executor.State, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	states, err := h.attempts.Adopted()
	if err != nil {
		return nil, err
	}
	for w := range h.attempts.Running() {
		h.life.Add(1)
		go h.attend(w, nil)
	}
	h.life.Add(1)
	go h.listen()
	h.life.Go(func() { h.folders.Run(h.attempts.Quit) })
	return states, nil
}

// adoptOne reads an attempt's folder.
func (h *Handler) adoptOne(name string) error {
	dir := h.folders.Of(name)
	o, err := box.ReadOrder(dir)
	if outputs.MayPass(err) {
		return err // it may be whole
	}
	if err != nil || o.Task.ID.String() != name || !attempts.ValidName(name) || !whole(dir) {
		return watchdog.RemoveTree(dir) // a crash before it was whole: it was never given to the engine
	}
	w := h.newWork(attempts.AdoptedAttempt(o.Task))
	h.setBounds(w, o)
	end, err := readEnd(dir)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts.Enter(w)
	if end == nil {
		w.Hold = h.room.Adopt(o.Task.Need, o.CPUs)
		if word, err := box.Hear(dir); err == nil && word.Run != nil {
			w.began, w.Began = true, word.Run.At // said in an earlier life
		}
		return nil
	}
	w.Ended = &end.End
	close(w.Done)
	close(w.cleaned)
	if end.Forgotten {
		if w.IsKept() {
			h.life.Go(func() { h.dropFiles(w) })
		}
		h.attempts.Keep(w)
	}
	return nil
}

// whole: box.Make has come to its end.
func whole(dir string) bool {
	st, err := os.Lstat(dir)
	return err == nil && st.Mode() == os.ModeDir|0o755
}

const (
	// endFile is the file of an attempt's folder that is the handler's own.
	endFile = "end"
	// maxEnd bounds it: a detail comes from an engine, or from inside a container.
	maxEnd = 1 << 20
)

func writeEnd(w *work, e ended) error { return attempts.WriteNote(filepath.Join(w.dir, endFile), e) }

// readEnd returns nil if there is none, or one torn by a crash: the attempt's own word
// counts again.
func readEnd(dir string) (*ended, error) {
	e := &ended{}
	err := attempts.ReadNote(filepath.Join(dir, endFile), maxEnd, e)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, attempts.ErrTorn) {
		return nil, nil
	}
	return e, err
}
