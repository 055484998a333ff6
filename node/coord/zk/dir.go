package zk

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The data directory holds lock and member.json: who this member is. The log is
// in the ensemble only.

// member is the identity of a data directory. It is written before anything in
// the tree depends on it.
type member struct {
	Version    int    `json:"version"`
	Site       string `json:"site"`
	Node       string `json:"node"`
	Federation string `json:"federation"`
	Epoch      uint64 `json:"epoch,omitempty"`
	Lineage    string `json:"lineage"`
	// Founder: this member founds the tree, if it has not done so yet.
	Founder bool `json:"founder,omitempty"`
}

// lockDir makes the directory and locks it against a second broker; the lock
// goes with the process.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w: another broker runs on %s: stop it, or use another directory: %w", ErrLocked, dir, err)
	}
	return f, nil
}

// loadMember returns nil if the directory is not in use.
func loadMember(dir string) (*member, error) {
	path := filepath.Join(dir, "member.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var m member
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil || m.Version != 1 {
		return nil, fmt.Errorf("%w: %s is not of version 1: run the version that wrote it: %w", ErrIdentity, path, err)
	}
	return &m, nil
}

// save writes the file so that a crash leaves the old or the new one.
func (m *member) save(dir string) error {
	path := filepath.Join(dir, "member.json")
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write member: %w", err)
	}
	_, err = f.Write(append(encode(m), '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write member: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// check compares a directory in use with the configuration.
func (m *member) check(cfg *Config) error {
	switch {
	case cfg.Bootstrap || cfg.Join:
		return fmt.Errorf("%w: %s holds site %s of federation %s: start it without --bootstrap and --join, or use an empty directory",
			ErrExistingData, cfg.Dir, m.Site, m.Federation)
	case m.Site != cfg.Site:
		return fmt.Errorf("%w: %s holds site %s, not %s: start it under its own name", ErrIdentity, cfg.Dir, m.Site, cfg.Site)
	case m.Node != hex.EncodeToString(cfg.Node[:]):
		return fmt.Errorf("%w: %s holds node %s, not %x: the directory was mixed from two", ErrIdentity, cfg.Dir, m.Node, cfg.Node)
	}
	return nil
}

// follows says whether the federation of this data has moved to the tree.
func (m *member) follows(c charter) bool { return m.Federation == c.Federation && m.Epoch < c.Epoch }

// checkTree compares the directory with the tree.
func (m *member) checkTree(c charter, path string) error {
	switch {
	case m.Federation != c.Federation:
		return fmt.Errorf("%w: %s is federation %s, this data is of federation %s: name the chroot of its own", ErrIdentity, path, c.Federation, m.Federation)
	case m.Lineage != c.Lineage:
		return fmt.Errorf("%w: %s is in epoch %d, this data is of epoch %d, and another history: name the chroot of its own", ErrIdentity, path, c.Epoch, m.Epoch)
	}
	return nil
}
