package source

import (
	"context"
	"io"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
)

// NoFiles are those of a broker that keeps none: whoever asks for one is told so.
type NoFiles struct{}

var _ Files = NoFiles{}

// MissingBlobs implements Files.
func (NoFiles) MissingBlobs(string, []files.Hash) ([]files.Hash, error) { return nil, node.ErrNoFiles }

// PutBlob implements Files.
func (NoFiles) PutBlob(context.Context, string, io.Reader, int64) (files.Blob, error) {
	return files.Blob{}, node.ErrNoFiles
}

// BeginBlob implements Files.
func (NoFiles) BeginBlob(string, files.Blob) (node.PartialBlob, error) { return nil, node.ErrNoFiles }

// OpenBlob implements Files.
func (NoFiles) OpenBlob(string, files.Hash) (node.BlobReader, error) { return nil, node.ErrNoFiles }

// Results implements Files.
func (NoFiles) Results(context.Context, command.JobID, uint32, int) ([]node.TaskResult, uint32, error) {
	return nil, 0, node.ErrNoFiles
}

// OpenResult implements Files.
func (NoFiles) OpenResult(command.JobID, files.Hash) (node.BlobReader, error) {
	return nil, node.ErrNoFiles
}

// FilesUse implements Files.
func (NoFiles) FilesUse() []node.SpaceUse { return nil }
