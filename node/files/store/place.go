package store

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/cloudshare/cloudshare/node/files"
)

// Space is a part of the store with a quota and a rule of its own.
type Space uint8

// The spaces.
const (
	// Own has inputs and results of this site's jobs. Unpinned ones go once nobody has put or asked for them for
	// Limit.Keep.
	Own Space = iota
	// Cache has inputs of others' jobs that run here. Unpinned ones go when room is needed, the least recently used
	// first. It is not synced: behind a crash of the machine whole blobs are dropped. A kill of the process or a
	// restart of the machine drops none.
	Cache
	// Outgoing has results of others' jobs, for their owners. One goes when the last pin goes, or if none came for
	// Limit.Keep.
	Outgoing
	spaces
)

// names are the folders of the spaces.
var names = [spaces]string{"own", "cache", "outgoing"}

// String returns the name of the space, which is that of its folder.
func (s Space) String() string {
	if s < spaces {
		return names[s]
	}
	return fmt.Sprintf("space %d", uint8(s))
}

// Place is where one owner's blobs of a space are. Bytes are never shared between places: whoever knows a hash only can
// neither read another owner's blob nor learn, by time or quota, that it is there.
type Place struct {
	Space Space
	Owner string // 1 to MaxOwner bytes, any
}

// MaxOwner is how many bytes the name of an owner may have.
const MaxOwner = 80

func (p Place) check() error {
	if p.Space >= spaces || p.Owner == "" || len(p.Owner) > MaxOwner {
		return fmt.Errorf("%w: %q in %s: 1 to %d bytes are a name", ErrOwner, p.Owner, p.Space, MaxOwner)
	}
	return nil
}

// Ref names a blob of a place.
type Ref struct {
	Place
	Hash files.Hash
}

// key is what the index knows a blob by.
type key = Ref

// String returns the blob's name for messages.
func (r Ref) String() string { return fmt.Sprintf("blob %s of %q (%s)", r.Hash, r.Owner, r.Space) }

// The names below the store's folder are SPACE/OWNER/HH/HASH, HH being the first two digits of HASH. A partial blob has
// HASH.part, and HASH.rows if it has several pieces; what is being written by Put is in the folder "new".
const (
	partExt   = ".part"
	rowsExt   = ".rows"
	newFolder = "new"
)

// folderOf returns the folder of a blob, below the store's.
func folderOf(k key) string {
	return strings.Join([]string{names[k.Space], escapeOwner(k.Owner), k.Hash.String()[:2]}, "/")
}

// fileOf returns the file of a blob, below the store's folder.
func fileOf(k key) string { return folderOf(k) + "/" + k.Hash.String() }

// escapeOwner returns an owner's name as that of a folder. It escapes as URLs do, and a first dot as well, so that the
// name leads nowhere; escapes take three bytes, which stays below 255.
func escapeOwner(owner string) string {
	name := url.PathEscape(owner)
	if strings.HasPrefix(name, ".") {
		return "%2E" + name[1:]
	}
	return name
}

// unescapeOwner returns the owner of a folder, and false if escapeOwner does not make such a name.
func unescapeOwner(name string) (string, bool) {
	owner, err := url.PathUnescape(name)
	return owner, err == nil && escapeOwner(owner) == name && Place{Owner: owner}.check() == nil
}
