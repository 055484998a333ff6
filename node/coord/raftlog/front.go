package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// fronted is a bolt store whose newest entries stand in a write-ahead file until
// some hundreds are there: then bolt takes them in one commit. An entry alone costs
// bolt two syncs and several pages, the file one sync of half a page. Terms and
// votes, and entries that are large together, go to bolt directly.
type fronted struct {
	disk
	wal *walfile.File

	writing sync.Mutex // held over a change of the log; taken before mu
	buf     []byte     // guarded by writing
	mu      sync.RWMutex
	// newest are the entries in wal; written with writing held, too. Invariant: indexes without a gap, and bolt
	// holds none of them nor any after them.
	newest []*raft.Log
	// broken is the first write that failed, to whichever file. What they hold since
	// is known after a restart, and raft may not hear of it at once; so nothing is
	// written any more, or a restart would mix what came before with what came after.
	broken error
}

const (
	walName = "raft.wal"
	// walBytes bounds what waits for bolt; its commit of so much takes some 10 ms.
	walBytes = 1 << 20
	// directBytes is what is worth a commit of its own: to write it twice costs more
	// than the second sync.
	directBytes = 64 << 10
)

// keyGeneration notes in bolt which generation of the file it holds.
var keyGeneration = []byte("WalGeneration")

// openFront opens the file beside a bolt store, which takes over what stands in
// it. Data of before this file have none and get one, of size bytes.
func openFront(d disk, path string, size int64) (*fronted, error) {
	noted, err := d.GetUint64(keyGeneration)
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, fmt.Errorf("open raft store: %w", err)
	}
	wal, records, err := walfile.Open(path, size, noted)
	if err != nil {
		return nil, fmt.Errorf("open raft store: %w", err)
	}
	f := &fronted{disk: d, wal: wal}
	for _, r := range records {
		logs, cause := parseLogs(r)
		if cause != nil {
			return nil, errors.Join(fmt.Errorf("%s is %w: %w", path, walfile.ErrDamaged, cause), wal.Close())
		}
		f.newest = append(f.newest, logs...)
	}
	if err = f.flush(nil); err == nil && noted == 0 {
		err = d.SetUint64(keyGeneration, wal.Held())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open raft store: %w", err), wal.Close())
	}
	return f, nil
}

// StoreLog implements raft.LogStore.
func (f *fronted) StoreLog(l *raft.Log) error { return f.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (f *fronted) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	return f.write(func() error { return f.store(logs) })
}

// write calls do while no other changes the log, unless a write has failed.
func (f *fronted) write(do func() error) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.unlessBroken(do)
}

// unlessBroken calls do unless a write has failed, and remembers whether this one did.
func (f *fronted) unlessBroken(do func() error) error {
	f.mu.RLock()
	err := f.broken
	f.mu.RUnlock()
	if err != nil {
		return err
	}
	if err = do(); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.broken = err
	}
	return err
}

// REQUIRES: f.writing held.
func (f *fronted) store(logs []*raft.Log) error {
	if n := len(f.newest); n > 0 && logs[0].Index != f.newest[n-1].Index+1 {
		if err := f.flush(nil); err != nil {
			return err
		}
	}
	if !gapless(logs) || bulk(logs) >= directBytes {
		return f.flush(logs)
	}
	f.buf = appendLogs(f.buf[:0], logs)
	if !f.wal.Fits(len(f.buf)) {
		return f.flush(logs)
	}
	if err := f.wal.Append(f.buf); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest = append(f.newest, logs...)
	return nil
}

// flush has bolt take what stands in the file, and more behind it.
//
// REQUIRES: f.writing held, or f not shared yet.
func (f *fronted) flush(more []*raft.Log) error {
	waiting := len(f.newest) > 0
	all := more
	if waiting {
		all = append(f.newest[:len(f.newest):len(f.newest)], more...)
	}
	if len(all) > 0 {
		if err := f.disk.StoreLogs(all); err != nil {
			return err
		}
	}
	if f.wal.Empty() {
		return nil
	}
	if err := f.disk.SetUint64(keyGeneration, f.wal.Generation()); err != nil {
		return err
	}
	if err := f.wal.Reset(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest = nil
	return nil
}

// GetLog implements raft.LogStore.
func (f *fronted) GetLog(index uint64, l *raft.Log) error {
	f.mu.RLock()
	if n := f.newest; len(n) > 0 && index >= n[0].Index && index-n[0].Index < uint64(len(n)) {
		*l = *n[index-n[0].Index]
		f.mu.RUnlock()
		return nil
	}
	f.mu.RUnlock()
	return f.disk.GetLog(index, l)
}

// FirstIndex implements raft.LogStore.
func (f *fronted) FirstIndex() (uint64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock() // over both: a flush in between would hide the newest
	first, err := f.disk.FirstIndex()
	if err == nil && first == 0 && len(f.newest) > 0 {
		first = f.newest[0].Index
	}
	return first, err
}

// LastIndex implements raft.LogStore.
func (f *fronted) LastIndex() (uint64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if n := len(f.newest); n > 0 {
		return f.newest[n-1].Index, nil
	}
	return f.disk.LastIndex()
}

// DeleteRange implements raft.LogStore.
func (f *fronted) DeleteRange(from, to uint64) error {
	return f.write(func() error {
		if err := f.flush(nil); err != nil {
			return err
		}
		return f.disk.DeleteRange(from, to)
	})
}

// Set implements raft.StableStore.
func (f *fronted) Set(k, v []byte) error {
	return f.unlessBroken(func() error { return f.disk.Set(k, v) })
}

// SetUint64 implements raft.StableStore.
func (f *fronted) SetUint64(k []byte, v uint64) error {
	return f.unlessBroken(func() error { return f.disk.SetUint64(k, v) })
}

// Close leaves all entries in bolt, unless a write has failed.
func (f *fronted) Close() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	var err error
	if f.broken == nil {
		err = f.flush(nil)
	}
	return errors.Join(err, f.wal.Close(), f.disk.Close())
}

func gapless(logs []*raft.Log) bool {
	for i, l := range logs {
		if l.Index != logs[0].Index+uint64(i) {
			return false
		}
	}
	return true
}

func bulk(logs []*raft.Log) (n int) {
	for _, l := range logs {
		n += len(l.Data) + len(l.Extensions)
	}
	return n
}

// A record of the file is the entries of one call:
//
//	n × (index · term · type · data · extensions · unix nanoseconds, 0 = none)
func appendLogs(dst []byte, logs []*raft.Log) []byte {
	for _, l := range logs {
		dst = binary.AppendUvarint(dst, l.Index)
		dst = binary.AppendUvarint(dst, l.Term)
		dst = append(dst, byte(l.Type))
		dst = binary.AppendUvarint(dst, uint64(len(l.Data)))
		dst = append(dst, l.Data...)
		dst = binary.AppendUvarint(dst, uint64(len(l.Extensions)))
		dst = append(dst, l.Extensions...)
		at := uint64(0)
		if !l.AppendedAt.IsZero() {
			at = uint64(l.AppendedAt.UnixNano())
		}
		dst = binary.AppendUvarint(dst, at)
	}
	return dst
}

// parseLogs reads what appendLogs wrote; the entries point into b.
func parseLogs(b []byte) (logs []*raft.Log, err error) {
	for d := relay.NewDecoder(b); d.Left() > 0; {
		l := &raft.Log{Index: d.Uvarint(), Term: d.Uvarint(), Type: raft.LogType(d.Byte())}
		l.Data, l.Extensions = d.Bytes(len(b)), d.Bytes(len(b))
		if at := d.Uvarint(); at != 0 {
			l.AppendedAt = time.Unix(0, int64(at))
		}
		if d.Bad() {
			return nil, fmt.Errorf("entry %d of a record does not read", len(logs))
		}
		logs = append(logs, l)
	}
	return logs, nil
}
