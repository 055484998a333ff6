package source

import (
	"context"
	"io"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Files keeps the files of this site's jobs. A user is "" for the site itself; users' bytes are apart: who knows a hash
// only learns nothing of another user's.
type Files interface {
	// MissingBlobs returns which of a user's blobs are not there. The others stay for a day from now on.
	MissingBlobs(user string, hashes []files.Hash) ([]files.Hash, error)
	// PutBlob keeps what r has, to its end, and returns its name.
	PutBlob(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error)
	// BeginBlob returns a blob to be filled in pieces, or resumed.
	BeginBlob(user string, b files.Blob) (node.PartialBlob, error)
	// OpenBlob opens one of a user's blobs.
	OpenBlob(user string, h files.Hash) (node.BlobReader, error)
	// Results returns what tasks of a job of this site have left, by task from a position on, so many at most, and
	// the position to go on with, 0: there are no more. Errors: node.ErrNotFound, and those of jobs.
	Results(ctx context.Context, id command.JobID, from uint32, most int) ([]node.TaskResult, uint32, error)
	// ResultSpec returns of a job that is no longer kept, and whose results are, which tasks it has had: count and
	// indices.
	ResultSpec(id command.JobID) (spec jobspec.Spec, known bool)
	// OpenResult opens a blob that a result of that job names: its manifest, or a file in it.
	OpenResult(id command.JobID, h files.Hash) (node.BlobReader, error)
	// FilesUse returns what the spaces have; nil: this broker keeps no files.
	FilesUse() []node.SpaceUse
}
