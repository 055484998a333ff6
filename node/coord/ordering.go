package coord

import (
	"io"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Ordering is a [Machine] that knows who may order its entries: for backends that keep them where others than the
// leader can write. Its methods may be called at any time, also beside Apply.
type Ordering interface {
	// MayOrder returns the key by which a site signs the next entry, if that is of a term in which the site may order
	// it, else an error that says why not. The zero key: nobody signs, everybody is believed.
	MayOrder(site string, term uint64) (signature.Key, error)
	// Term is the last one seen.
	Term() uint64
	// Orderers are the keys of the sites that may order entries, by site; nil: nobody decides that.
	Orderers() map[string]signature.Key
}

// Expecting is a [Machine] that restores a snapshot only if it is of the entry that it is said to be of: who wrote it
// may say what is not so.
type Expecting interface {
	RestoreAt(r io.Reader, index uint64) error
}
