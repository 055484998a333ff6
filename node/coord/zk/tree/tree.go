// Package tree says what stands in a federation's tree of znodes: names, records, and
// the encoding of entries. Step 3 of a job's way, on ZooKeeper. It talks to no server.
package tree

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Errors of what is in a tree.
var (
	// ErrTree: the chroot holds something already, or something else.
	ErrTree = errors.New("the chroot is in use")
	// ErrVersion: another version of CloudShare wrote the tree.
	ErrVersion = errors.New("the tree is of another version")
	// ErrDamaged: a znode is missing that must be there, or is not what was
	// written.
	ErrDamaged = errors.New("the tree is damaged")
)

// The tree below the chroot; every znode is for the holder of the digest only.
//
//	/federation        whose tree it is: charter, never changed
//	/federation/LINEAGE   the mark: what is written by a member checks it last, so that it lands in no other tree
//	/lead              the term and its leader; its version is the fence of appends
//	/leader            ephemeral: elects
//	/log/NUMBER        an entry; numbers are entry numbers, 20 digits, without a gap
//	/parts/NUMBER.I    of an entry that is too long for a request
//	/snapshot          the pointer, written last
//	/snapshots/ENTRY.TERM.I   chunks of a snapshot
//	/members/SITE      who belongs to the group
//	/voters/SITE       of them, who stands for leader
//	/present/SITE      ephemeral: a hint that the broker is connected
//	/present/SITE.…    ephemeral: what it says of itself
//	/importing         before there is a tree: its version is the fence of imports
const (
	FederationPath = "/federation"
	LeadPath       = "/lead"
	LeaderPath     = "/leader"
	LogPath        = "/log"
	PartsPath      = "/parts"
	SnapshotPath   = "/snapshot"
	SnapshotsPath  = "/snapshots"
	MembersPath    = "/members"
	VotersPath     = "/voters"
	PresentPath    = "/present"
	ImportingPath  = "/importing"
)

// Version is the format of the tree and everything in it. Format 1 had no mark, in format 2 nobody signed.
const Version = 3

// MarkPath returns the znode that only this lineage's tree has.
func MarkPath(lineage string) string { return FederationPath + "/" + lineage }

// Number returns how a znode names an entry: names sort as numbers do.
func Number(n uint64) string { return fmt.Sprintf("%020d", n) }

// EntryPath returns where an entry stands.
func EntryPath(n uint64) string { return LogPath + "/" + Number(n) }

// PartPath returns where a part of an entry stands.
func PartPath(n uint64, i int) string { return fmt.Sprintf("%s/%020d.%d", PartsPath, n, i) }

// ParseNumber reads the number that a name begins with.
func ParseNumber(name string) (uint64, error) {
	head, _, _ := strings.Cut(name, ".")
	if len(head) != 20 {
		return 0, fmt.Errorf("%w: %.80q is no name of ours", ErrDamaged, name)
	}
	n, err := strconv.ParseUint(head, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.80q is no name of ours", ErrDamaged, name)
	}
	return n, nil
}

// Charter is what /federation says.
type Charter struct {
	Version    int    `json:"version"`
	Federation string `json:"federation"`
	// Epoch and Lineage: a federation that was moved or recovered is in a later
	// epoch, with an id of its own; in the first one it is the federation's.
	Epoch   uint64 `json:"epoch"`
	Lineage string `json:"lineage"`
	// Origin is the id of the export that the tree began with, or "".
	Origin string `json:"origin,omitempty"`
}

// LeadRecord is what /lead says.
type LeadRecord struct {
	Term  uint64 `json:"term"`
	Site  string `json:"site,omitempty"`
	Peer  string `json:"peer,omitempty"`
	Nonce string `json:"nonce,omitempty"` // of this term: what /leader holds
	// Moved is the id of the export that has sealed the tree (move.go): nobody may
	// lead any more.
	Moved string `json:"moved,omitempty"`
	// By has signed it; "": nobody has, as where members have no keys, and in a tree that nobody has led yet.
	By        string `json:"by,omitempty"`
	Signature string `json:"signature,omitempty"` // in hex
}

// MemberRecord is what /members/SITE says.
type MemberRecord struct {
	Node string `json:"node"`
}

// Pointer is what /snapshot says. Chunks is empty in a tree that has none yet.
type Pointer struct {
	Entry uint64 `json:"entry"` // the last one in it
	Term  uint64 `json:"term"`  // of the leader that wrote it
	Bytes int64  `json:"bytes"`
	// Sums are those of the chunks, in order.
	Sums []Sum `json:"sums,omitempty"`
	// By has signed it; "": nobody has, as where members have no keys.
	By        string `json:"by,omitempty"`
	Signature []byte `json:"signature,omitempty"`
}

// Chunk returns where a chunk of the snapshot stands.
func (p Pointer) Chunk(i int) string {
	return fmt.Sprintf("%s/%020d.%d.%d", SnapshotsPath, p.Entry, p.Term, i)
}

// Parse decodes the JSON of a znode. Unknown fields are faults: who changes the
// format changes treeVersion.
func Parse(path string, data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %s does not read: %w", ErrDamaged, path, err)
	}
	return nil
}

// Encode writes what Parse reads.
func Encode(v any) []byte {
	b, _ := json.Marshal(v) // plain structs of ours always encode
	return b
}

// ParseCharter checks the version before it looks at anything else.
func ParseCharter(path string, data []byte) (c Charter, err error) {
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &v) != nil || v.Version < 1 {
		return c, fmt.Errorf("%w: %s is not a federation of ours: name another chroot", ErrTree, path)
	}
	if v.Version > Version {
		return c, fmt.Errorf("%w: %s is of format %d, this broker knows %d: run the version that wrote it", ErrVersion, path, v.Version, Version)
	}
	if v.Version < Version {
		return c, fmt.Errorf("%w: %s is of the former format %d, this broker knows %d: have the version that wrote it export it "+
			"(cloudshare state export), and import that file at another chroot", ErrVersion, path, v.Version, Version)
	}
	if err = Parse(path, data, &c); err != nil {
		return c, err
	}
	if _, err = ParseID(c.Federation); err == nil {
		_, err = ParseID(c.Lineage)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return c, err
}

// ParseID reads an id of 16 bytes.
func ParseID(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, errors.New("not an id of 16 bytes")
	}
	return [16]byte(b), nil
}

// Sites keeps the names that are sites'.
func Sites(names []string) []string {
	out := names[:0:0]
	for _, n := range names {
		if command.ValidSite(n) {
			out = append(out, n)
		}
	}
	return out
}
