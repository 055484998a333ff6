package zk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
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
func (m *member) save(dir string) error { return facade.SaveMember(dir, m) }

// check compares a directory in use with the configuration.
func (m *member) check(cfg *Config) error {
	if cfg.Bootstrap || cfg.Join {
		return facade.InUse(cfg.Dir, m.Site, m.Federation)
	}
	return facade.CheckOwner(cfg.Dir, m.Site, m.Node, cfg.Site, cfg.Node)
}

// follows reports whether the federation of this data has moved to the tree.
func (m *member) follows(c tree.Charter) bool {
	return m.Federation == c.Federation && m.Epoch < c.Epoch
}

// checkTree compares the directory with the tree.
func (m *member) checkTree(c tree.Charter, path string) error {
	switch {
	case m.Federation != c.Federation:
		return fmt.Errorf("%w: %s is federation %s, this data is of federation %s: name the chroot of its own", ErrIdentity, path, c.Federation, m.Federation)
	case m.Lineage != c.Lineage:
		return fmt.Errorf("%w: %s is in epoch %d, this data is of epoch %d, and another history: name the chroot of its own", ErrIdentity, path, c.Epoch, m.Epoch)
	}
	return nil
}
