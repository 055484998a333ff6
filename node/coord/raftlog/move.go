package raftlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A federation moves to another backend and back through a file (package
// statefile). Export reads a stopped member's state and seals the directory, so
// that nothing is ordered behind what was read; sealed voters that are a majority
// cannot have a leader any more. Found makes the directory of a first member from a
// state, under a mark, as Recover does. Reopen takes a seal away.

// Export surveys a stopped member's data, seals them, and calls write, for which
// the Machine of o holds the state. Whoever has the greatest LastTerm, then
// LastIndex, of a majority of the voters has all that was acknowledged. Sealed
// data can be exported again, under the same id. Errors: those of Inspect;
// coord.ErrRunning if any other member answers; ErrUnfinished.
func Export(ctx context.Context, o Offline, write func(Survey) error) error {
	return o.visit("export", func(s *survivor) error { return s.export(ctx, write) })
}

func (s *survivor) export(ctx context.Context, write func(Survey) error) error {
	v, err := s.survey(ctx)
	if err != nil {
		return err
	}
	if v.Unfinished {
		return fmt.Errorf("%w: %s", ErrUnfinished, s.member.unfinished())
	}
	for _, p := range v.Peers {
		if p.Answers {
			return fmt.Errorf("%w: %s answers at %s: stop all brokers first", coord.ErrRunning, p.Site, p.Addr)
		}
	}
	if v.Moved == "" {
		v.Moved = newID()
	}
	s.member.Moved = v.Moved
	return s.steps(
		step{"seal", func() error { return s.member.save(s.Dir) }},
		step{"write", func() error { return write(v) }},
	)
}

func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Reopen takes the seal of an export away, so that the member goes on here; the
// file must be imported nowhere. Errors: those of Inspect, among them ErrEpoch if
// the federation is seen to have gone on elsewhere.
func Reopen(ctx context.Context, o Offline) error {
	return o.visit("reopen", func(s *survivor) error {
		_, err := s.survey(ctx)
		if err == nil && s.member.Moved != "" {
			s.member.Moved = ""
			err = s.member.save(s.Dir)
		}
		return err
	})
}

// movedError says why sealed data are not used.
func (m *member) movedError(dir string) error {
	return fmt.Errorf("%w: %s (export %s): start the broker on the backend that it was imported into; "+
		"if it was imported nowhere, go on here with cloudshare state reopen", coord.ErrMoved, dir, m.Moved)
}

// Founding is what the first member of an epoch begins with besides the state.
type Founding struct {
	Site       string
	Node       [16]byte
	Federation [16]byte
	// Epoch and Lineage are those that the state is of; the next one begins.
	Epoch   uint64
	Lineage [16]byte
	// Term is the greatest that the state has seen: later ones are greater.
	Term uint64
	// Origin is the id of the export.
	Origin string
	Addr   string // peer address of the member
	HoldMs int64  // as for Recover
}

// Newcomer is a site that has been a member on another backend.
type Newcomer struct {
	Site       string
	Node       [16]byte
	Federation [16]byte
	Epoch      uint64 // the last one that it has been in
	Lineage    [16]byte
}

// member returns that of an empty directory.
func (n *Newcomer) member() *member {
	m := &member{Version: memberVersion, Site: n.Site, Node: hex.EncodeToString(n.Node[:])}
	m.setLine(lineage{federation: n.Federation, id: n.Lineage, epoch: n.Epoch})
	return m
}

// Found makes the directory of the only voter of the epoch after f.Epoch, with
// the state that the Machine of o, which it takes once, holds. Repeated after an
// interruption it starts over. Data of an earlier epoch than f.Epoch are replaced.
// Errors: ErrLocked; ErrExistingData for any other data; ErrIdentity and
// coord.ErrForeign for another site's or federation's; ErrUnfinished.
func Found(o Offline, f Founding) error {
	lock, err := facade.LockDir(o.Dir)
	if err != nil {
		return fmt.Errorf("found: %w", err)
	}
	m, err := loadMember(o.Dir)
	if err == nil {
		err = f.replaces(m, o.Dir)
	}
	if err == nil {
		err = o.found(f, m)
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return fmt.Errorf("found %s: %w", o.Dir, err)
	}
	return nil
}

// replaces says whether what is in a directory, nil for nothing, may go.
func (f *Founding) replaces(m *member, dir string) error {
	if m == nil {
		return nil
	}
	line, err := m.line()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s/member.json: %w", ErrIdentity, dir, err)
	case line.federation != f.Federation:
		return fmt.Errorf("%w: the data are of federation %x, the state of %x", coord.ErrForeign, line.federation, f.Federation)
	case m.Site != f.Site || m.Node != hex.EncodeToString(f.Node[:]):
		return fmt.Errorf("%w: the data are of site %s, node %s", ErrIdentity, m.Site, m.Node)
	case m.Unfinished == stepFound && m.Origin == f.Origin:
		return nil
	case m.Unfinished != "":
		return fmt.Errorf("%w: %s", ErrUnfinished, m.unfinished())
	case m.Origin == f.Origin:
		return fmt.Errorf("%w: this state was imported here already: start the broker", ErrExistingData)
	case line.epoch >= f.Epoch:
		return fmt.Errorf("%w: they are of epoch %d, the state of epoch %d: move the directory away, or import at another site",
			ErrExistingData, line.epoch, f.Epoch)
	}
	return nil
}

func (o Offline) found(f Founding, m *member) error {
	if f.Epoch >= command.MaxEpoch {
		return fmt.Errorf("%w: epoch %d is the last", ErrConfig, f.Epoch)
	}
	s := &survivor{Offline: o, member: m, line: lineage{federation: f.Federation, epoch: f.Epoch + 1}}
	_, _ = rand.Read(s.line.id[:]) // never fails
	if m == nil || m.Unfinished == "" {
		s.member = (&Newcomer{f.Site, f.Node, f.Federation, f.Epoch, f.Lineage}).member()
		s.member.Origin = f.Origin
	}
	s.member.beginStep(stepFound, s.line, nil)
	return s.steps(
		step{"mark", func() error { return s.member.save(o.Dir) }},
		step{"empty", s.empty},
		step{"write", func() error { return s.write(f) }},
		step{"done", func() error { s.member.endStep(); return s.member.save(o.Dir) }},
	)
}

func (o Offline) empty() error {
	return errors.Join(o.dropLog(), os.RemoveAll(filepath.Join(o.Dir, "snapshots")), relay.SyncDir(o.Dir))
}

// write begins a log whose first snapshot is the state in its new epoch.
func (s *survivor) write(f Founding) (err error) {
	if s.store, err = store.Open(s.Dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if s.snaps, err = raft.NewFileSnapshotStoreWithLogger(s.Dir, 2, raftLogger(s.Logger)); err != nil {
		return fmt.Errorf("open snapshots: %w", err)
	}
	rc := raft.DefaultConfig()
	rc.LocalID, rc.Logger = raft.ServerID(f.Site), raftLogger(s.Logger)
	_, trans := raft.NewInmemTransport(raft.ServerAddress(f.Addr))
	defer trans.Close()
	err = raft.BootstrapCluster(rc, s.store, s.store, s.snaps, trans, raft.Configuration{
		Servers: []raft.Server{{ID: rc.LocalID, Address: transport.ServerAddress(f.Site, f.Addr)}},
	})
	if err != nil {
		return fmt.Errorf("begin a log: %w", err)
	}
	// raft's own key of the term it is in: the next one is greater.
	if err = s.store.SetUint64([]byte("CurrentTerm"), max(1, f.Term)); err != nil {
		return fmt.Errorf("save the term: %w", err)
	}
	return s.rewrite(f.Addr, f.HoldMs)
}
