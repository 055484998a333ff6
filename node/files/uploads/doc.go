// Package uploads keeps what has come of uploads that are not finished (step 1 of a job's way): which there are, and
// the bytes behind their last whole piece. The pieces themselves are the store's partial blobs. It knows neither HTTP
// nor jobs.
//
//	u, err := all.Begin(user, blob)   // or Resume
//	defer u.Release()
//	offset, err := u.Offset(partial)
//	offset, err = u.Write(partial, body)
package uploads

import (
	"errors"

	"github.com/cloudshare/cloudshare/node/files"
)

// Errors of this package.
var (
	// ErrUnknown reports an upload that was not begun, or is over.
	ErrUnknown = errors.New("there is no such upload")
	// ErrBusy reports an upload that another request writes.
	ErrBusy = errors.New("another request writes this upload")
	// ErrTooMany reports a user, or a broker, with as many unfinished uploads as there may be.
	ErrTooMany = errors.New("too many uploads are unfinished")
	// ErrFull reports a disk without room.
	ErrFull = errors.New("the disk has no room for an upload")
)

// Partial is a blob that is being filled, as the store has it; see store.Partial.
type Partial interface {
	Size() int64
	Pieces() int
	Missing() []int
	WritePiece(i int, data []byte) error
	Finish() error
}

// key names an upload: whose, and of what.
type key struct {
	user files.Hash // of the user's name: names may be longer than a folder's
	blob files.Blob
}
