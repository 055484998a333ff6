package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// errNoFolder: somebody has removed a slot's folder while its supervisor lives.
// That is the site's trouble, never the task's.
var errNoFolder = errors.New("removed while in use")

// makeDirs makes the folders of slots and of outputs, if they are missing.
func (h *Handler) makeDirs() error {
	for _, d := range []string{"slots", "logs"} {
		if err := h.aside.Folder(filepath.Join(h.cfg.Dir, d)); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder makes the slot's folder, and those above it if they were removed.
func (h *Handler) makeFolder(s *slot) error {
	err := os.Mkdir(s.dir, 0o700)
	if errors.Is(err, os.ErrNotExist) {
		h.cfg.Logger.Warn().Str("folder", filepath.Dir(s.dir)).Msg("the folder of tasks was removed; making it again")
		if err = h.makeDirs(); err == nil {
			err = os.Mkdir(s.dir, 0o700)
		}
	}
	if err == nil && s.contained {
		err = h.contain.makeOwn(s.dir)
	}
	return err
}

// missing says what is not there any more of the slot: its supervisor works in
// the folder that was, and what it records there nobody would find.
func (s *slot) missing() error {
	ours, err := s.journal.Stat()
	if err != nil {
		return fmt.Errorf("look at journal: %w", err)
	}
	path := filepath.Join(s.dir, "journal")
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, there) {
		return fmt.Errorf("%s: %w", path, errNoFolder)
	}
	if err != nil {
		return err
	}
	if s.contained {
		if err = hasFolder(filepath.Join(s.dir, sandbox.TempFolder), true); err != nil {
			return err
		}
	}
	return hasFolder(filepath.Join(s.dir, sandbox.WorkFolder), s.served)
}

// hasFolder looks for a work folder. One that has served was made, so that only
// others can have removed it; a new supervisor may be about to make it.
func hasFolder(work string, served bool) error {
	st, err := os.Lstat(work)
	switch {
	case errors.Is(err, os.ErrNotExist) && !served:
		return nil
	case errors.Is(err, os.ErrNotExist), err == nil && !st.IsDir():
		return fmt.Errorf("%s: %w", work, errNoFolder)
	}
	return err
}

// takeIdle takes the idle supervisor that served last, of a kind and, in a sandbox, of
// the owner's, else of nobody's; nil = none.
func (h *Handler) takeIdle(k kind, owner string) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := -1
	for i, s := range h.idle {
		fits := s.kind == k && (s.owner == "" || s.owner == owner)
		if fits && (found < 0 || s.owner != "" || h.idle[found].owner == "") {
			found = i
		}
	}
	if found < 0 {
		return nil
	}
	s := h.idle[found]
	h.idle = slices.Delete(h.idle, found, found+1)
	return s
}

// warmest takes an idle supervisor whose folder is there, nil = none. The others
// are let go. The slot is nobody else's until it is assigned.
func (h *Handler) warmest(k kind, owner string) *slot {
	for {
		s := h.takeIdle(k, owner)
		if s == nil {
			return nil
		}
		err := s.missing()
		old := s.hasOldNames()
		if err == nil && !old {
			return s
		}
		if err != nil && !errors.Is(err, os.ErrClosed) { // else it has just died, or we close
			h.cfg.Logger.Warn().Err(err).Str("folder", s.dir).Int("supervisor", s.pid).
				Msg("a slot for tasks cannot be used any more; its supervisor is replaced")
		}
		h.mu.Lock()
		h.retire(s)
		h.mu.Unlock()
	}
}
