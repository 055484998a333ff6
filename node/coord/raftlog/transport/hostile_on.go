//go:build mutate

package transport

import (
	"bytes"
	"io"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// toldEntries returns what a member is told in place of a request's entries: others under the same numbers, which are
// committed by the majority that has the true ones.
func (t *Transport) toldEntries(to raft.ServerID, args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	const name = "leader-tells-two-histories"
	if len(args.Entries) == 0 {
		return args
	}
	victim, on := mutate.Hostile(string(t.self.ID), name)
	if !on || !mutate.Means(victim, string(to)) {
		return args
	}
	told := *args
	told.Entries = slices.Clone(args.Entries)
	for i, e := range told.Entries {
		if e.Type != raft.LogCommand {
			continue
		}
		if data, other := mutate.Lies.Entry(e.Data, string(t.self.ID), string(to)); other {
			lie := *e // raft's own stays as it is
			lie.Data = data
			told.Entries[i] = &lie
			mutate.Did(name)
		}
	}
	return &told
}

// machineHead is what raftlog puts in front of a state.
const machineHead = 16

// toldState returns what a member is told in place of a snapshot.
func (t *Transport) toldState(to raft.ServerID, args *raft.InstallSnapshotRequest, data io.Reader,
) (*raft.InstallSnapshotRequest, io.Reader) {
	const name = "leader-sends-a-false-snapshot"
	victim, on := mutate.Hostile(string(t.self.ID), name)
	if !on || !mutate.Means(victim, string(to)) {
		return args, data
	}
	all, err := io.ReadAll(data)
	if err != nil || len(all) < machineHead {
		return args, bytes.NewReader(all)
	}
	if state, err := mutate.Lies.State(all[machineHead:], string(t.self.ID)); err == nil {
		all = append(all[:machineHead:machineHead], state...)
		mutate.Did(name)
	}
	told := *args
	told.Size = int64(len(all))
	return &told, bytes.NewReader(all)
}
