package raftlog

import (
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/boltfile"
)

// guarded is a bolt store whose panics are errors: bolt meets damage wherever
// raft happens to read, mostly on raft's own goroutines. The store then ends this
// member as for any other fault of the disk.
type guarded struct {
	disk
	path string
}

var _ disk = (*guarded)(nil)

// guard is call with a result.
func guard[T any](g *guarded, call func() (T, error)) (v T, err error) {
	err = boltfile.Guard(g.path, func() (cause error) {
		v, cause = call()
		return cause
	})
	return v, err
}

// FirstIndex implements raft.LogStore.
func (g *guarded) FirstIndex() (uint64, error) { return guard(g, g.disk.FirstIndex) }

// LastIndex implements raft.LogStore.
func (g *guarded) LastIndex() (uint64, error) { return guard(g, g.disk.LastIndex) }

// GetLog implements raft.LogStore.
func (g *guarded) GetLog(index uint64, l *raft.Log) error {
	return boltfile.Guard(g.path, func() error { return g.disk.GetLog(index, l) })
}

// StoreLog implements raft.LogStore.
func (g *guarded) StoreLog(l *raft.Log) error {
	return boltfile.Guard(g.path, func() error { return g.disk.StoreLog(l) })
}

// StoreLogs implements raft.LogStore.
func (g *guarded) StoreLogs(logs []*raft.Log) error {
	return boltfile.Guard(g.path, func() error { return g.disk.StoreLogs(logs) })
}

// DeleteRange implements raft.LogStore.
func (g *guarded) DeleteRange(from, to uint64) error {
	return boltfile.Guard(g.path, func() error { return g.disk.DeleteRange(from, to) })
}

// Set implements raft.StableStore.
func (g *guarded) Set(k, v []byte) error {
	return boltfile.Guard(g.path, func() error { return g.disk.Set(k, v) })
}

// Get implements raft.StableStore.
func (g *guarded) Get(k []byte) ([]byte, error) {
	return guard(g, func() ([]byte, error) { return g.disk.Get(k) })
}

// SetUint64 implements raft.StableStore.
func (g *guarded) SetUint64(k []byte, v uint64) error {
	return boltfile.Guard(g.path, func() error { return g.disk.SetUint64(k, v) })
}

// GetUint64 implements raft.StableStore.
func (g *guarded) GetUint64(k []byte) (uint64, error) {
	return guard(g, func() (uint64, error) { return g.disk.GetUint64(k) })
}
