//go:build !mutate

package transport

import (
	"io"

	"github.com/hashicorp/raft"
)

// toldEntries and toldState are hooks of test/attacks: there the leader tells a member what is not so.

func (t *Transport) toldEntries(_ raft.ServerID, args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	return args
}

func (t *Transport) toldState(_ raft.ServerID, args *raft.InstallSnapshotRequest, data io.Reader,
) (*raft.InstallSnapshotRequest, io.Reader) {
	return args, data
}
