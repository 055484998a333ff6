package node

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// Errors of files that travel with tasks, beside those of package store; api maps each to one HTTP status.
var (
	// ErrNoFiles: this broker keeps none.
	ErrNoFiles = errors.New("this broker keeps no files") // 503
	// ErrResultsGone: what a job has left was here, and its time is over or the disk has lost it.
	ErrResultsGone = errors.New("results gone") // 410
)

// InputError says which input of a job is not to be had as its spec says. It is the job's user's to mend: 422.
type InputError struct {
	Field  string // as in a SpecError, such as inputs.0.sha256
	Reason string
	// Missing: the broker has not, or no longer, what it names; else its job asks for what cannot be.
	Missing bool
}

// Error implements error.
func (e *InputError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// DataTerms are how far a site lets files travel with tasks.
type DataTerms struct {
	// LendMax is how many bytes files and outputs of one task of another site may take here together.
	LendMax int64
	// DeliverWait is how long outputs of its tasks at a site that is away are waited for, before they are lost.
	DeliverWait time.Duration
	// Hold is how long it keeps the outputs of others' tasks that their owner does not fetch.
	Hold time.Duration
	// KeepResults is how long it keeps the results of its own jobs after their end.
	KeepResults time.Duration
}

// TaskResult names the files that a task of one of this site's jobs has left, as they are kept here.
type TaskResult struct {
	Task, Attempt uint32 // position from 0; attempt from 1
	Manifest      files.Blob
	Bytes         int64 // of all files in it
}

// BlobReader reads a blob. Read returns an error in the place of io.EOF if what it returned is not what the blob's
// hash says; ReadAt looks at no hash.
type BlobReader interface {
	io.ReadCloser
	io.ReaderAt
	Size() int64
}

// PartialBlob is a blob that is being filled, in pieces of files.PieceBytes: see store.Partial.
type PartialBlob interface {
	Size() int64
	Pieces() int
	Missing() []int
	WritePiece(i int, data []byte) error
	Finish() error
	Close() error
	Abandon() error
}

// SpaceUse is what a space of the site's store of files has.
type SpaceUse struct {
	Space      string // "own", "cache" or "outgoing"
	Bytes, Max int64
	// Promised is kept for what is to come of tasks that run here, in bytes.
	Promised int64
	Blobs    int
}
