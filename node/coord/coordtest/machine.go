// Package coordtest is the conformance suite of coord: what every backend of
// step 3 promises, shown on a small state machine. It imports coord and fsm and
// no backend of coord; [BareRaft] is the library itself, for benchmarks.
package coordtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Explode is a text whose command [Machine] cannot understand.
const Explode = "explode"

// Toil is a text whose command leaves [Machine] work for so many entries more.
const (
	Toil = "toil"
	toil = 40
)

// errExplode is what Apply answers to it.
var errExplode = errors.New("an entry that cannot be understood")

// Done is one command that was executed.
type Done struct {
	ID    command.ID
	Text  string // of the Addresses that the suite proposes
	Entry uint64
}

// Machine is a state machine that records what it was told. It follows the
// rules of the real one for command ids, and is safe for concurrent reading.
type Machine struct {
	mu       sync.Mutex
	grown    chan struct{} // closed and replaced after each change
	restored int

	s recordState
}

// recordState is what a snapshot holds.
type recordState struct {
	Index, Term uint64
	Elapsed     int64
	Idle        int // empty entries
	Work        int // entries without commands that are still wanted
	Repeats     int // commands answered from the window
	Disorder    string
	Trace       [32]byte // hash over all entries
	Done        []Done
	Sites       map[string]*siteState
}

type siteState struct {
	Node, Boot  [16]byte
	Incarnation uint64
	Floor       uint64
	Window      map[uint64]command.Result
}

var (
	_ coord.Machine    = (*Machine)(nil)
	_ coord.Unfinished = (*Machine)(nil)
)

// NewMachine returns an empty machine.
func NewMachine() *Machine {
	return &Machine{grown: make(chan struct{}), s: recordState{Sites: map[string]*siteState{}}}
}

// Pending implements coord.Unfinished.
func (m *Machine) Pending() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Work > 0
}

// Apply implements coord.Machine.
func (m *Machine) Apply(entry []byte) ([]command.Result, error) {
	b, err := command.DecodeBatch(entry)
	if err != nil {
		return nil, fmt.Errorf("decode batch: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.s
	s.Index++
	s.Trace = sha256.Sum256(append(s.Trace[:], entry...))
	switch {
	case recovers(b): // no leader stamped it
	case b.Term < s.Term || b.Term == s.Term && b.Elapsed < s.Elapsed:
		s.Disorder = fmt.Sprintf("entry %d: stamp %d.%d after %d.%d", s.Index, b.Term, b.Elapsed, s.Term, s.Elapsed)
		fallthrough
	default:
		s.Term, s.Elapsed = b.Term, b.Elapsed
	}
	if len(b.Commands) == 0 {
		s.Idle++
		s.Work = max(0, s.Work-1)
	}
	results := make([]command.Result, len(b.Commands))
	for i := range b.Commands {
		if results[i], err = s.execute(&b.Commands[i]); err != nil {
			return nil, err
		}
	}
	close(m.grown)
	m.grown = make(chan struct{})
	return results, nil
}

// recovers reports whether the batch begins an epoch.
func recovers(b *command.Batch) bool {
	return len(b.Commands) == 1 && b.Commands[0].Body.Kind() == command.KindRecover
}

func (s *recordState) execute(c *command.Command) (command.Result, error) {
	x := s.Sites[c.ID.Site]
	if x == nil {
		x = &siteState{Window: map[uint64]command.Result{}}
		s.Sites[c.ID.Site] = x
	}
	text := ""
	switch b := c.Body.(type) {
	case *command.Register:
		return s.register(x, b), nil
	case *command.Recover:
		if b.Epoch > command.EpochOf(s.Index) {
			s.Index = b.Epoch << 40
		}
		return command.Result{Index: s.Index}, nil
	case *command.Addresses:
		if text = b.HTTP; text == Toil {
			s.Work = toil
		}
	case *command.SiteLost:
		if b.Term != s.Term {
			return command.Result{Code: command.OldTerm, Index: s.Index}, nil
		}
		text = "lost " + b.Site
	}
	if text == Explode {
		return command.Result{}, errExplode
	}
	if old, ok := x.Window[c.ID.Seq]; ok && c.ID.Incarnation == x.Incarnation {
		s.Repeats++
		return old, nil
	}
	if c.ID.Incarnation != x.Incarnation || c.ID.Seq <= x.Floor {
		return command.Result{Code: command.Stale, Index: s.Index}, nil
	}
	s.Done = append(s.Done, Done{c.ID, text, s.Index})
	r := command.Result{Index: s.Index}
	x.Window[c.ID.Seq] = r
	for ; x.Floor < c.Ack; x.Floor++ {
		delete(x.Window, x.Floor+1)
	}
	return r, nil
}

func (s *recordState) register(x *siteState, b *command.Register) command.Result {
	if x.Incarnation > 0 && x.Node != b.Node {
		return command.Result{Code: command.NameTaken, Index: s.Index}
	}
	if x.Incarnation == 0 || x.Boot != b.Boot {
		*x = siteState{Node: b.Node, Boot: b.Boot, Incarnation: x.Incarnation + 1, Window: map[uint64]command.Result{}}
	}
	return command.Result{Index: s.Index, Incarnation: x.Incarnation, NextJob: 1}
}

// Snapshot implements coord.Machine.
func (m *Machine) Snapshot() (coord.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&m.s); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return frozen(b.Bytes()), nil
}

type frozen []byte

// Write implements coord.Snapshot.
func (f frozen) Write(w io.Writer) error {
	_, err := w.Write(f)
	return err
}

// Release implements coord.Snapshot.
func (frozen) Release() {}

// Restore implements coord.Machine.
func (m *Machine) Restore(r io.Reader) error {
	var s recordState
	if err := gob.NewDecoder(r).Decode(&s); err != nil {
		return fmt.Errorf("decode state: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s = s
	m.restored++
	close(m.grown)
	m.grown = make(chan struct{})
	return nil
}

// Result implements coord.Machine.
func (m *Machine) Result(id command.ID) (command.Result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.s.Sites[id.Site]
	if x == nil || x.Incarnation != id.Incarnation {
		return command.Result{}, false
	}
	r, ok := x.Window[id.Seq]
	return r, ok
}

// Index implements coord.Machine.
func (m *Machine) Index() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Index
}

// Admit implements coord.Machine: a registered name belongs to its node.
func (m *Machine) Admit(site string, node [16]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.s.Sites[site]; x != nil && x.Incarnation > 0 && x.Node != node {
		return fmt.Errorf("site %s belongs to node %x", site, x.Node)
	}
	return nil
}

// view returns a copy for the tests.
func (m *Machine) view() (recordState, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.s
	s.Done = append([]Done(nil), s.Done...)
	return s, m.restored
}

// Entries returns the entries applied and the hash over all of them.
func (m *Machine) Entries() (index uint64, trace [32]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Index, m.s.Trace
}

// Executed returns how many commands were executed, registrations not counted.
func (m *Machine) Executed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.s.Done)
}

// Restored returns how often a snapshot replaced the state.
func (m *Machine) Restored() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restored
}

// await returns once cond holds, or the context's error.
func (m *Machine) await(ctx context.Context, cond func(s recordState, restored int) bool) error {
	for {
		m.mu.Lock()
		grown := m.grown
		m.mu.Unlock()
		if cond(m.view()) {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
