package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// cleanBound is how long what an attempt has left in a sandbox keeps its end from being told.
const cleanBound = 2 * time.Second

// errCleansLong: a sandbox serves nobody any more, and goes when it is empty.
var errCleansLong = errors.New("its last task left so much that removing it takes longer than " + cleanBound.String())

// cleanInTime removes what the attempt has left; in a sandbox it waits for it up to a bound, and cleaned tells the
// rest.
func (a *attempt) cleanInTime(r *executor.Result, cleaned chan error) error {
	// Its handler moves the work folder away before anything else is given to this process.
	kept := a.Task.Outputs.Kept(*r)
	switch {
	case !a.inside && kept:
		return nil
	case !a.inside:
		return cleanWork(filepath.Join(a.slot, sandbox.WorkFolder))
	case r.Started.IsZero(): // there is nothing
		return nil
	}
	go func() { cleaned <- a.wipe(kept) }()
	late := time.NewTimer(a.cleanFor)
	defer late.Stop()
	select {
	case err := <-cleaned:
		return err
	case <-late.C:
		return errCleansLong
	}
}

// wipe removes all that an attempt left in its sandbox. The folders themselves stay:
// they are mounted. kept: all but its work folder. REQUIRES: no process of the attempt is left.
func (s *supervisor) wipe(kept bool) error {
	var err error
	if !kept {
		err = wipeFolder(filepath.Join(s.slot, sandbox.WorkFolder), nil)
	}
	err = errors.Join(
		err,
		wipeFolder(filepath.Join(s.slot, sandbox.TempFolder), below("/tmp", s.shares)),
		wipeFolder(sandbox.SharedMemory, nil), // nothing in /dev is shared
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
	// A task may have taken the right to write it, or to look into it, from its owner.
	if err := errors.Join(os.Chmod(dir, 0o700), dropAttributes(dir)); err != nil {
		return err
	}
	dropFlags(dir)
	if len(keep) == 0 && isEmpty(dir) {
		return nil
	}
	for {
		if again, err := wipeEntries(dir, keep); !again || err != nil {
			return err
		}
	}
}

// wipeEntries removes what a folder holds but for keep, and reports whether something went: not every file system shows
// all to whoever removes meanwhile.
func wipeEntries(dir string, keep []string) (again bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for name, unread := range watchdog.Names(f) {
		if unread != nil {
			return false, cmp.Or(err, unread)
		}
		went, failed := wipeEntry(filepath.Join(dir, name), name, keep)
		again, err = again || went, cmp.Or(err, failed)
	}
	return again, err
}

// wipeEntry removes one of them, or what is in it beside keep.
func wipeEntry(path, name string, keep []string) (went bool, err error) {
	under := below(name, keep)
	switch {
	case slices.Contains(keep, name):
		return false, nil
	case len(under) > 0:
		return false, wipeFolder(path, under)
	}
	err = watchdog.RemoveTree(path)
	return err == nil, err
}

// dropAttributes removes the extended attributes that a task may have set.
func dropAttributes(dir string) error {
	n, err := unix.Llistxattr(dir, nil)
	if n == 0 || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	names := make([]byte, max(n, 0))
	if n, err = unix.Llistxattr(dir, names); err != nil {
		return fmt.Errorf("list attributes of %s: %w", dir, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:n]), "\x00"), "\x00") {
		if strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl") {
			err = errors.Join(err, unix.Lremovexattr(dir, name))
		}
	}
	return err
}

// dropFlags removes the flags of a folder that its owner may set and that new files inherit: synchronous writes, above
// all. Not every file system has them.
func dropFlags(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	const inherited = flagCompressed | flagSync | flagNoDump | flagNoAtime | flagDirSync
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&inherited != 0 {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags&^inherited)
	}
}

// Flags of inodes (linux/fs.h).
const (
	flagCompressed = 0x4
	flagSync       = 0x8
	flagNoDump     = 0x40
	flagNoAtime    = 0x80
	flagDirSync    = 0x10000
)

// keptPath is where a sandbox leaves an ended attempt's output.
func (s *slot) keptPath(name string, stream int) string {
	return filepath.Join(s.dir, outputName(name, stream))
}

// collect moves the output of an attempt from its sandbox's slot to its place.
func (h *Handler) collect(s *slot, name string) {
	for stream := range attempts.Streams {
		from, to := s.keptPath(name, stream), logPath(h.cfg.Dir, name, stream)
		err := os.Rename(from, to)
		if errors.Is(err, os.ErrNotExist) {
			if _, lerr := os.Lstat(from); lerr != nil {
				continue // there was none
			}
			err = errors.Join(h.makeDirs(), os.Rename(from, to)) // its place was removed
		}
		if err != nil {
			// It keeps its size: who reads it hears that it is gone, and not that there was none.
			h.cfg.Logger.Warn().Err(err).Str("attempt", name).Msg("the output of an attempt cannot be kept")
		}
	}
}
