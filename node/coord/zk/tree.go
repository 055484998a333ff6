package zk

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
)

// The tree below the chroot; every znode is for the holder of the digest only.
//
//	/federation        whose tree it is: charter, never changed
//	/federation/LINEAGE   the mark: what is written by a member checks it last, so that it lands in no other tree
//	/lead              the term and its lead; its version is the fence of appends
//	/leader            ephemeral: elects
//	/log/NUMBER        an entry; numbers are entry numbers, 20 digits, without a gap
//	/parts/NUMBER.I    of an entry that is too long for a request
//	/snapshot          the pointer, written last
//	/snapshots/ENTRY.TERM.I   chunks of a snapshot
//	/members/SITE      who belongs to the group
//	/voters/SITE       of them, who stands for lead
//	/present/SITE      ephemeral: a hint that the broker is connected
//	/importing         before there is a tree: its version is the fence of imports (claim.go)
const (
	pathFederation = "/federation"
	pathLead       = "/lead"
	pathLeader     = "/leader"
	pathLog        = "/log"
	pathParts      = "/parts"
	pathSnapshot   = "/snapshot"
	pathSnapshots  = "/snapshots"
	pathMembers    = "/members"
	pathVoters     = "/voters"
	pathPresent    = "/present"
	pathImporting  = "/importing"
)

// treeVersion is the format of the tree and everything in it. Format 1 had no mark.
const treeVersion = 2

// markPath is the znode that only this lineage's tree has.
func markPath(lineage string) string { return pathFederation + "/" + lineage }

// number is how a znode names an entry: names sort as numbers do.
func number(n uint64) string { return fmt.Sprintf("%020d", n) }

func logPath(n uint64) string { return pathLog + "/" + number(n) }

func partPath(n uint64, i int) string { return fmt.Sprintf("%s/%020d.%d", pathParts, n, i) }

// parseNumber reads the number that a name begins with.
func parseNumber(name string) (uint64, error) {
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

// charter is what /federation says.
type charter struct {
	Version    int    `json:"version"`
	Federation string `json:"federation"`
	// Epoch and Lineage: a federation that was moved or recovered is in a later
	// epoch, with an id of its own; in the first one it is the federation's.
	Epoch   uint64 `json:"epoch"`
	Lineage string `json:"lineage"`
	// Origin is the id of the export that the tree began with, or "".
	Origin string `json:"origin,omitempty"`
}

// leading is what /lead says.
type leading struct {
	Term  uint64 `json:"term"`
	Site  string `json:"site,omitempty"`
	Peer  string `json:"peer,omitempty"`
	Nonce string `json:"nonce,omitempty"` // of this reign: what /leader holds
	// Moved is the id of the export that has sealed the tree (move.go): nobody may
	// lead any more.
	Moved string `json:"moved,omitempty"`
}

// enlisted is what /members/SITE says.
type enlisted struct {
	Node string `json:"node"`
}

// pointer is what /snapshot says. Chunks is empty in a tree that has none yet.
type pointer struct {
	Entry uint64 `json:"entry"` // the last one in it
	Term  uint64 `json:"term"`  // of the lead that wrote it
	Bytes int64  `json:"bytes"`
	// Sums are the crc32c of the chunks, in order.
	Sums []uint32 `json:"sums,omitempty"`
}

func (p pointer) chunk(i int) string {
	return fmt.Sprintf("%s/%020d.%d.%d", pathSnapshots, p.Entry, p.Term, i)
}

// parse decodes the JSON of a znode. Unknown fields are faults: who changes the
// format changes treeVersion.
func parse(path string, data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %s does not read: %w", ErrDamaged, path, err)
	}
	return nil
}

func encode(v any) []byte {
	b, _ := json.Marshal(v) // plain structs of ours always encode
	return b
}

// parseCharter checks the version before it looks at anything else.
func parseCharter(path string, data []byte) (c charter, err error) {
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &v) != nil || v.Version < 1 {
		return c, fmt.Errorf("%w: %s is not a federation of ours: name another chroot", ErrTree, path)
	}
	if v.Version > treeVersion {
		return c, fmt.Errorf("%w: %s is of format %d, this broker knows %d: run the version that wrote it", ErrVersion, path, v.Version, treeVersion)
	}
	if v.Version < treeVersion {
		return c, fmt.Errorf("%w: %s is of the former format %d, this broker knows %d: have the version that wrote it export it "+
			"(cloudshare state export), and import that file at another chroot", ErrVersion, path, v.Version, treeVersion)
	}
	if err = parse(path, data, &c); err != nil {
		return c, err
	}
	if _, err = parseID(c.Federation); err == nil {
		_, err = parseID(c.Lineage)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return c, err
}

func parseID(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, errors.New("not an id of 16 bytes")
	}
	return [16]byte(b), nil
}

// sites keeps the names that are sites'.
func sites(names []string) []string {
	out := names[:0:0]
	for _, n := range names {
		if fsm.ValidSite(n) {
			out = append(out, n)
		}
	}
	return out
}
