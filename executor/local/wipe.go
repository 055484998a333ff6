package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// wipe removes all that an attempt left in its sandbox. The folders themselves stay:
// they are mounted. REQUIRES: no process of the attempt is left.
func (s *supervisor) wipe() error {
	err := errors.Join(
		wipeFolder(filepath.Join(s.slot, sandbox.WorkFolder), nil),
		wipeFolder(filepath.Join(s.slot, sandbox.TempFolder), below("/tmp", s.shares)),
		wipeFolder(sandbox.SharedMemory, below(sandbox.SharedMemory, s.shares)),
	)
	if err != nil {
		return fmt.Errorf("clean up the sandbox: %w", err)
	}
	return nil
}

// below returns the paths below dir, relative to it.
func below(dir string, paths []string) (list []string) {
	for _, path := range paths {
		if rel, ok := strings.CutPrefix(path, dir+"/"); ok {
			list = append(list, rel)
		}
	}
	return list
}

// wipeFolder empties a folder but for what is at the relative paths keep, where others'
// folders are mounted, and makes it private again.
func wipeFolder(dir string, keep []string) error {
	if len(keep) == 0 && isEmpty(dir) {
		return nil
	}
	// A task may have taken the right to look into it from its owner.
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path, under := filepath.Join(dir, e.Name()), below(e.Name(), keep)
		switch {
		case slices.Contains(keep, e.Name()):
		case len(under) > 0:
			err = errors.Join(err, wipeFolder(path, under))
		default:
			err = errors.Join(err, watchdog.RemoveTree(path))
		}
	}
	return err
}

// keptPath is where a sandbox leaves an ended attempt's output.
func (s *slot) keptPath(name string, stream int) string {
	return filepath.Join(s.dir, name+"."+attempts.Streams[stream])
}

// collect moves the output of an attempt from its sandbox's slot to its place.
func (h *Handler) collect(s *slot, name string) {
	for stream := range attempts.Streams {
		err := os.Rename(s.keptPath(name, stream), logPath(h.cfg.Dir, name, stream))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			// It keeps its size: who reads it hears that it is gone, and not that there was none.
			h.cfg.Logger.Warn().Err(err).Str("attempt", name).Msg("the output of an attempt cannot be kept")
		}
	}
}
