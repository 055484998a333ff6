package wholefile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrExposed reports a file that others than its owner may read or replace.
var ErrExposed = errors.New("key file is exposed")

// CheckSecret refuses a file that others than its owner, this process' user or root, may read or replace. reader says
// what whoever has read it can do.
func CheckSecret(path string, st os.FileInfo, reader string) error {
	owner := st.Sys().(*syscall.Stat_t).Uid
	switch {
	case st.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: others may read or write %s (mode %04o): chmod 600 it; whoever has read it can %s",
			ErrExposed, path, st.Mode().Perm(), reader)
	case owner != 0 && int(owner) != os.Geteuid():
		return fmt.Errorf("%w: %s belongs to user %d, and this is user %d: chown it, or run as that user",
			ErrExposed, path, owner, os.Geteuid())
	}
	return nil
}
