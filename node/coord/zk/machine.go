package zk

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// machine drives a coord.Machine with znodes. Its position is the entry number.
type machine struct {
	mu       sync.Mutex // serializes all calls of the Machine
	m        coord.Machine
	header   relay.Header
	position relay.Position
	grown    atomic.Int64 // bytes applied since the last snapshot
	line     [16]byte     // the lineage; set before anything is applied
	// last is the entry at position, for a leader that finds it changed; nil behind a snapshot.
	last *tree.Entry
}

// apply executes entry n and settles the calls in it. One that does not count (isUncounted) changes nothing.
func (m *machine) apply(n uint64, e *tree.Entry, calls *relay.Calls) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.judge(n, e); err != nil {
		return err
	}
	if err := relay.ParseHeader(e.Header, &m.header); err != nil {
		m.header = relay.Header{} // it is in the order all the same
	}
	if d, ok := m.m.(coord.Dated); ok {
		d.Dated(e.At)
	}
	batch := e.Batch
	if term, err := command.DecodeTerm(batch); err == nil && term == 0 {
		batch = command.AppendBatch(nil, 0, 0, nil, nil) // only what is no entry of a log has no term
	}
	results, err := m.m.Apply(batch)
	switch {
	case err != nil:
		return err
	case m.m.Index() != n:
		return fmt.Errorf("it made the state's entry number %d: %w", m.m.Index(), errOrder)
	}
	m.grown.Add(int64(len(e.Batch)))
	if calls != nil { // none at an export
		calls.Applied(m.header.Of(results), batch, results)
		if coord.HasWork(m.m) {
			calls.RequestEntry()
		}
	}
	m.last = e
	m.position.Advance(n)
	return nil
}

// lastEntry returns the last entry applied, if it is n and no snapshot has it.
func (m *machine) lastEntry(n uint64) *tree.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.position.Now() != n {
		return nil
	}
	return m.last
}

// counts says whether an entry counts as the next one, number n.
func (m *machine) counts(n uint64, e *tree.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.position.Now(); at+1 != n {
		return fmt.Errorf("%w: entry %d is not behind %d", errUncounted, n, at)
	}
	return m.judge(n, e)
}

var errOrder = errors.New("entries of two logs are mixed")

// restore replaces the state by a snapshot up to entry n.
func (m *machine) restore(n uint64, r io.Reader, calls *relay.Calls) error {
	m.mu.Lock()
	err := m.restoreAt(n, r)
	again := func() {}
	if err == nil {
		m.grown.Store(0)
		if calls != nil {
			again = calls.Restored(n, m.m.Result)
		}
		m.last = nil
		m.position.Advance(n)
	}
	m.mu.Unlock()
	again()
	return err
}

// restoreAt REQUIRES: m.mu held.
func (m *machine) restoreAt(n uint64, r io.Reader) error {
	if x, expects := m.m.(coord.Expecting); expects {
		return x.RestoreAt(r, n)
	}
	err := m.m.Restore(r)
	if err == nil && m.m.Index() != n {
		err = fmt.Errorf("it is of entry %d, not %d: %w", m.m.Index(), n, errOrder)
	}
	return err
}

// freeze returns the state, the entry it is of, and what had grown by then.
func (m *machine) freeze() (s coord.Snapshot, at uint64, grown int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err = m.m.Snapshot()
	return s, m.position.Now(), m.grown.Load(), err
}

// with calls f while no Apply runs.
func (m *machine) with(f func(coord.Machine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.m)
}
