package raftlog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/node/coord/facade"
)

// The data directory holds lock, member.json, raft.db, raft.wal and snapshots/.

// member is the identity of a data directory. It is written before anything
// depends on it: its presence means that the directory is in use.
type member struct {
	Version    int    `json:"version"`
	Site       string `json:"site"`
	Node       string `json:"node"`
	Federation string `json:"federation"`
	// Founder: this member bootstraps the group, if it has not done so yet.
	Founder bool `json:"founder"`
	// Epoch and Lineage: see lineage. Both are empty in the first epoch.
	Epoch   uint64 `json:"epoch,omitempty"`
	Lineage string `json:"lineage,omitempty"`
	// Unfinished names the step of recover.go that was interrupted: the rest of
	// the directory may be of two epochs, and only that step, or Follow in place of
	// it, may go on.
	Unfinished string `json:"unfinished,omitempty"`
	// Former is what the directory held before the mark. Invariant: it is there
	// if and only if Unfinished is.
	Former *formerState `json:"former,omitempty"`
	// Through are peer addresses through which this member, which has no
	// configuration yet, is to be admitted: the first time, or to the epoch for which
	// it has dropped its log. They stay until the first configuration has come.
	Through []string `json:"follow,omitempty"`
	// Moved is the id of the export that has sealed the directory: the federation
	// goes on elsewhere (move.go).
	Moved string `json:"moved,omitempty"`
	// Origin is the id of the export that the epoch began with here.
	Origin string `json:"origin,omitempty"`
}

// formerState is what a marked directory held before: a lineage, as member names it,
// and, for stepRecover, the members, this one too, by site.
type formerState struct {
	Epoch   uint64 `json:"epoch,omitempty"`
	Lineage string `json:"lineage,omitempty"`
	Peers   []Peer `json:"peers,omitempty"`
}

// memberVersion 3: the log is a journal. The versions before kept it in another
// format; nothing of them was ever released, and they are refused.
const memberVersion = 3

// loadMember returns nil if the directory is not in use.
func loadMember(dir string) (*member, error) {
	b, err := os.ReadFile(filepath.Join(dir, "member.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read member: %w", err)
	}
	var m member
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil || m.Version != memberVersion {
		return nil, fmt.Errorf("%w: %s/member.json is not of version %d: run the version that wrote it", ErrIdentity, dir, memberVersion)
	}
	return &m, nil
}

// save writes the file so that a crash leaves the old or the new one.
func (m *member) save(dir string) error { return facade.SaveMember(dir, m) }

func newMember(cfg *Config, line lineage) *member {
	m := &member{Version: memberVersion, Site: cfg.Site, Node: hex.EncodeToString(cfg.Node[:]), Founder: cfg.Bootstrap}
	m.setLine(line)
	return m
}

// check compares a directory in use with the configuration, and returns its
// lineage.
func (m *member) check(cfg *Config) (lineage, error) {
	if cfg.Bootstrap || len(cfg.Join) > 0 && len(m.Through) == 0 {
		return lineage{}, facade.InUse(cfg.Dir, m.Site, m.Federation)
	}
	line, err := m.line()
	if err != nil {
		return line, fmt.Errorf("%w: %s/member.json: %w: restore the directory", ErrIdentity, cfg.Dir, err)
	}
	switch {
	case m.Unfinished != "":
		err = fmt.Errorf("%w in %s: %s", ErrUnfinished, cfg.Dir, m.unfinished())
	case m.Moved != "":
		err = m.movedError(cfg.Dir)
	default:
		err = facade.CheckOwner(cfg.Dir, m.Site, m.Node, cfg.Site, cfg.Node)
	}
	if err == nil && cfg.Federation != [16]byte{} && cfg.Federation != line.federation {
		err = fmt.Errorf("%w: %s belongs to federation %s, not %x", ErrIdentity, cfg.Dir, m.Federation, cfg.Federation)
	}
	return line, err
}

// unfinished says how to go on behind a mark.
func (m *member) unfinished() string {
	if m.Unfinished == stepFound {
		return "run it again: cloudshare " + stepFound + ", with export " + m.Origin
	}
	text := "run it again: cloudshare recover " + m.Unfinished
	if m.Unfinished == stepRecover {
		text += "; or, if another survivor was recovered instead, cloudshare recover " + stepFollow
	}
	return text
}
