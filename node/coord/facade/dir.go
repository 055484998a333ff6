package facade

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// Errors of data directories, the same for all backends.
var (
	// ErrExistingData: bootstrap or join was asked for, but the directory
	// holds a member already.
	ErrExistingData = errors.New("data directory is in use by a member")
	// ErrNoData: neither bootstrap nor join, and the directory holds nothing.
	ErrNoData = errors.New("data directory is empty")
	// ErrLocked: another process runs on the directory.
	ErrLocked = errors.New("data directory is locked")
	// ErrIdentity: the directory belongs to another site, node or federation.
	ErrIdentity = errors.New("data directory has another identity")
)

// CheckOwner refuses a directory that holds another site or node than it is started
// as.
func CheckOwner(dir, holds, holdsNode, site string, node [16]byte) error {
	switch {
	case holds != site:
		return fmt.Errorf("%w: %s holds site %s, not %s: start it under its own name", ErrIdentity, dir, holds, site)
	case holdsNode != hex.EncodeToString(node[:]):
		return fmt.Errorf("%w: %s holds node %s, not %x: the directory was mixed from two", ErrIdentity, dir, holdsNode, node)
	}
	return nil
}

// InUse refuses to found or enter with a directory that holds a member.
func InUse(dir, site, federation string) error {
	return fmt.Errorf("%w: %s holds site %s of federation %s: start it without --bootstrap and --join, or use an empty directory",
		ErrExistingData, dir, site, federation)
}

// Succeed binds a member's directory of a site to the site's next node, whatever node it was of before; a directory
// without a member stays as it is. The caller has seen that the federation has replaced the site's key.
func Succeed(dir, site string, node [16]byte) error {
	b, err := os.ReadFile(filepath.Join(dir, "member.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	fields := map[string]json.RawMessage{} // of any backend
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err != nil {
		return fmt.Errorf("read member: %w", err)
	}
	var holds, holdsNode string
	_, _ = json.Unmarshal(fields["site"], &holds), json.Unmarshal(fields["node"], &holdsNode)
	if holds != site || holdsNode == "" {
		return nil // CheckOwner says what is wrong
	}
	next := hex.EncodeToString(node[:])
	if holdsNode == next {
		return nil
	}
	fields["node"] = json.RawMessage(`"` + next + `"`)
	return SaveMember(dir, fields)
}

// LockDir makes a member's directory and locks it against a second broker; the
// lock goes with the process.
func LockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another broker runs on %s: stop it, or use another directory", ErrLocked, dir)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// SaveMember writes a directory's member.json so that a crash leaves the old or
// the new one.
func SaveMember(dir string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode member: %w", err)
	}
	if err = wholefile.Replace(filepath.Join(dir, "member.json"), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write member: %w", err)
	}
	return nil
}
