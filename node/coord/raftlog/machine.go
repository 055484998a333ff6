package raftlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// errVoid answers an entry whose stamp is of another term than raft's, since its leader
// lost and regained the leadership between stamping and appending, or that has none that
// can be read, which no leader of this program writes. Every member sees the same bytes
// and skips it, so that stamped terms never go back.
var errVoid = errors.New("entry stamped in another term, or not at all")

// callSettler is told what was executed: relay.Calls.
type callSettler interface {
	Applied(h *relay.Header, batch []byte, results []command.Result)
	Restored(index uint64, result func(command.ID) (command.Result, bool)) (again func())
	RequestEntry()
}

// noCalls has no calls: a machine that is driven outside raft.
type noCalls struct{}

func (noCalls) Applied(*relay.Header, []byte, []command.Result) {}

func (noCalls) RequestEntry() {}

func (noCalls) Restored(uint64, func(command.ID) (command.Result, bool)) (again func()) {
	return func() {}
}

// machine lets raft drive a coord.Machine.
type machine struct {
	// mu serializes all calls of the Machine.
	mu     sync.Mutex
	m      coord.Machine
	broken error // after it nothing is applied any more
	// refused is why the newest snapshot was not taken before begun was closed: raft tells
	// its log only.
	refused error

	calls    callSettler // whose calls they are
	fail     func(error)
	onApply  func(*raft.Log) // tells the followers
	onConfig func()
	begun    chan struct{} // closed once the callbacks may be used
	header   relay.Header
	index    atomic.Uint64  // the Machine's entry number
	position relay.Position // raft's index
	grown    atomic.Int64   // bytes applied since the last snapshot
}

var (
	_ raft.FSM                = (*machine)(nil)
	_ raft.ConfigurationStore = (*machine)(nil)
)

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any {
	<-m.begun
	m.onApply(l)
	m.grown.Add(int64(len(l.Data)))
	m.mu.Lock()
	err := m.apply(l)
	m.mu.Unlock()
	if err != nil && !errors.Is(err, errVoid) {
		m.fail(err)
		return err
	}
	m.position.Advance(l.Index)
	if err != nil {
		return err
	}
	return nil
}

// prepare tells a machine of entries that are about to be written.
func prepare(m coord.Preparing, logs []*raft.Log) {
	for _, l := range logs {
		if l.Type == raft.LogCommand {
			m.Prepare(l.Data)
		}
	}
}

// REQUIRES: m.mu held.
func (m *machine) apply(l *raft.Log) error {
	if m.broken != nil {
		return m.broken
	}
	if err := relay.ParseHeader(l.Extensions, &m.header); err != nil || m.header.Term != l.Term {
		return errVoid
	}
	if term, err := command.DecodeTerm(l.Data); err == nil && term != l.Term {
		return errVoid // log time and what only a term's leader says would go by it
	}
	if d, ok := m.m.(coord.Dated); ok {
		d.Dated(l.AppendedAt)
	}
	results, err := m.m.Apply(l.Data)
	if err != nil {
		return m.stop(l, err)
	}
	m.index.Store(m.m.Index())
	m.calls.Applied(m.header.Of(results), l.Data, results)
	if coord.HasWork(m.m) {
		m.calls.RequestEntry()
	}
	return nil
}

func (m *machine) stop(l *raft.Log, err error) error {
	m.broken = fmt.Errorf("apply entry %d of term %d: %w; this broker stops rather than skip it: "+
		"run the version that wrote it, or restore the data directory", l.Index, l.Term, err)
	return m.broken
}

// StoreConfiguration implements raft.ConfigurationStore: configuration entries
// count as applied, so that a raft index handed out by a read is always reached.
func (m *machine) StoreConfiguration(index uint64, _ raft.Configuration) {
	<-m.begun
	m.position.Advance(index)
	m.onConfig()
}

// call runs f while no Apply runs.
func (m *machine) call(f func(coord.Machine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.m)
}

// snapshotMagic begins a snapshot: magic · raft index of the last entry in it · the Machine's own.
var snapshotMagic = [8]byte{'C', 'S', 'L', 'O', 'G', 0, 0, 1}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return nil, m.broken
	}
	s, err := m.m.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	m.grown.Store(0)
	return &frozenSnapshot{s: s, index: m.position.Now()}, nil
}

// Restore implements raft.FSM.
func (m *machine) Restore(rc io.ReadCloser) error {
	defer rc.Close()
	r := bufio.NewReaderSize(rc, 64<<10)
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("restore: read header: %w", err)
	}
	if [8]byte(head[:8]) != snapshotMagic {
		return fmt.Errorf("restore: not a snapshot of this version: %x", head[:8])
	}
	at := binary.BigEndian.Uint64(head[8:])
	m.mu.Lock()
	err := m.m.Restore(r)
	again := func() {}
	if err == nil {
		m.grown.Store(0)
		m.index.Store(m.m.Index())
		again = m.calls.Restored(at, m.m.Result)
		m.position.Advance(at)
	}
	m.mu.Unlock()
	again()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("restore: %w", err)
	if errors.Is(err, fsm.ErrNewVersion) { // raft would ask for the same snapshot forever
		select {
		case <-m.begun:
			m.fail(err)
		default: // Open fails
		}
	}
	if m.refused == nil {
		m.refused = err
	}
	return err
}

// frozenSnapshot writes one snapshot.
type frozenSnapshot struct {
	s     coord.Snapshot
	index uint64
}

// Persist implements raft.FSMSnapshot.
func (f *frozenSnapshot) Persist(sink raft.SnapshotSink) error {
	w := bufio.NewWriterSize(sink, 64<<10)
	head := binary.BigEndian.AppendUint64(snapshotMagic[:len(snapshotMagic):len(snapshotMagic)], f.index)
	_, err := w.Write(head)
	if err == nil {
		err = f.s.Write(w)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (f *frozenSnapshot) Release() { f.s.Release() }
