package raftlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// When the quorum is lost for good, one survivor is made the only voter of a new
// epoch (Recover), and the others drop their logs and follow it (Follow). Both
// work on the data of a stopped broker, and both can be cut off anywhere and
// repeated: the first step marks the directory as unfinished, under the new
// lineage, and Open refuses it until the last step has taken the mark away.
// Nobody has ever been of the lineage of a mark, and others may have gone on
// meanwhile; so what is repeated is checked as what the data was before the mark
// (member.Former), among the members it had then.

// Steps of a recovery, as member.Unfinished names them.
const (
	stepRecover = "--yes"
	stepFollow  = "--follow HOST:PORT --yes"
	stepFound   = "state import FILE" // move.go
)

// Offline is the data of a stopped member.
type Offline struct {
	Dir string
	// Machine makes an empty state machine; each pass over the data takes one.
	Machine func() coord.Machine
	Logger  zerolog.Logger
	// As is who the member is, for Follow on a directory that has no log of its own
	// yet: the site comes from another backend. Nil if it must have one.
	As *Newcomer

	// Net is the network of peers; nil is the real one, in plain.
	Net     *relay.Network
	crashed func(step string) error
}

// Peer is a member as the data names it.
type Peer struct {
	Site  string `json:"site"`
	Addr  string `json:"addr"`
	Voter bool   `json:"voter,omitempty"`
	// Answers: a broker of this federation, in the epoch that the data is of, or
	// was before an unfinished recovery, runs there now.
	Answers bool `json:"-"`
}

// Survey is what a stopped member's data holds.
type Survey struct {
	Site       string
	Federation [16]byte
	Epoch      uint64
	// LastTerm and LastIndex are of the newest stored log entry. Of several
	// survivors the one with the greatest LastTerm, then LastIndex, lacks least.
	LastTerm, LastIndex uint64
	Entry               uint64 // number of the last entry applied
	// Peers are all members, this one too, by site; those before the recovery if
	// it is unfinished.
	Peers []Peer
	// Unfinished: a recovery of this data was interrupted.
	Unfinished bool
	// Lineage is the epoch's, the federation's own in the first one.
	Lineage [16]byte
	// Moved is the id of the export that has sealed this data (move.go), or "".
	Moved string
}

// survivor is an open data directory.
type survivor struct {
	Offline
	lock   *os.File
	member *member
	line   lineage // with an unfinished recovery the new one
	former lineage // before an unfinished recovery, else line
	store  store.Disk
	snaps  *raft.FileSnapshotStore
}

// Inspect reads a stopped member's data, replays it into a machine, and asks the
// other members whether they are there. It changes nothing. Errors: ErrLocked,
// ErrNoData, ErrIdentity.
func Inspect(ctx context.Context, o Offline) (v Survey, err error) {
	err = o.visit("inspect", func(s *survivor) (cause error) {
		v, cause = s.survey(ctx)
		return cause
	})
	return v, err
}

// Recover makes the member the only voter of a new epoch, which holds back
// assignments for holdMs of log time, or a lease and the margin if that is more.
// Repeated after an interruption it goes on, under the same conditions. Errors:
// those of Inspect; ErrNoLoss if the voters that answer form a quorum, or it is
// the only voter anyway; ErrEpoch if somebody else was recovered already.
func Recover(ctx context.Context, o Offline, holdMs int64) error {
	return o.visit("recover", func(s *survivor) error { return s.recover(ctx, holdMs) })
}

// visit opens the stopped member for use, and closes it again.
func (o Offline) visit(verb string, use func(*survivor) error) error {
	s, err := o.open()
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err = errors.Join(use(s), s.close()); err != nil {
		return fmt.Errorf("%s %s: %w", verb, o.Dir, err)
	}
	return nil
}

// claim locks a directory that is in use.
func (o Offline) claim() (*os.File, *member, error) {
	m, err := loadMember(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	if m == nil && o.As == nil {
		return nil, nil, fmt.Errorf("%w: %s: give the data directory of a member", ErrNoData, o.Dir)
	}
	lock, err := facade.LockDir(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	if m, err = loadMember(o.Dir); m == nil && err == nil && o.As != nil { // as it is now
		m = o.As.member()
	}
	if err != nil || m == nil {
		return nil, nil, errors.Join(err, lock.Close(), ErrNoData)
	}
	return lock, m, nil
}

func (o Offline) open() (*survivor, error) {
	lock, m, err := o.claim()
	if err != nil {
		return nil, err
	}
	s := &survivor{Offline: o, lock: lock, member: m}
	if s.line, s.former, err = m.lines(); err != nil {
		err = fmt.Errorf("%w: %s/member.json: %w", ErrIdentity, o.Dir, err)
	}
	if err == nil && m.Unfinished == stepFound {
		err = fmt.Errorf("%w in %s: %s", ErrUnfinished, o.Dir, m.unfinished())
	}
	if err == nil && (m.Unfinished == stepFollow || len(m.Through) > 0) {
		err = fmt.Errorf("%w: %s has no log of its own yet: start it, or run cloudshare recover --follow", ErrNoData, o.Dir)
	}
	if err == nil {
		s.store, err = store.Open(o.Dir)
	}
	if err == nil {
		s.snaps, err = raft.NewFileSnapshotStoreWithLogger(o.Dir, 2, raftLogger(o.Logger))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *survivor) close() error {
	var errs []error
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

func (s *survivor) recover(ctx context.Context, holdMs int64) error {
	v, err := s.survey(ctx)
	if err != nil {
		return err
	}
	// The only voter has nothing to recover from, unless its term is stuck; it may not
	// be any more once that was begun.
	if err = v.checkLoss(); err != nil && !((s.termTooHigh() || v.Unfinished) && v.isOnlyVoter()) {
		return err
	}
	if v.Moved != "" {
		return s.member.movedError(s.Dir)
	}
	if !v.Unfinished {
		next := lineage{federation: s.line.federation, epoch: v.Epoch + 1}
		if next.epoch > command.MaxEpoch {
			return fmt.Errorf("%w: epoch %d is the last", ErrConfig, v.Epoch)
		}
		_, _ = rand.Read(next.id[:]) // never fails
		s.line = next
		s.member.beginStep(stepRecover, next, v.Peers)
	}
	self := slices.IndexFunc(v.Peers, func(p Peer) bool { return p.Site == v.Site })
	if self < 0 {
		return fmt.Errorf("%w: %s is no member in its own data: it was removed, or never joined; take another survivor", ErrIdentity, v.Site)
	}
	err = s.steps(
		step{"mark", func() error { return s.member.save(s.Dir) }},
		step{"rewrite", func() error { return s.rewrite(v.Peers[self].Addr, holdMs) }},
		step{"prune", s.prune},
		step{"term", s.lowerTerm},
		step{"done", func() error { s.member.endStep(); return s.member.save(s.Dir) }},
	)
	return err
}

type step struct {
	name string
	do   func() error
}

// steps runs in order; tests crash it behind any.
func (o Offline) steps(all ...step) error {
	for _, st := range all {
		err := st.do()
		if err == nil && o.crashed != nil {
			err = o.crashed(st.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLoss says why the group needs no recovery from here.
func (v *Survey) checkLoss() error {
	voters, alive := 0, 0
	var answer []string
	for _, p := range v.Peers {
		if !p.Voter {
			continue
		}
		voters++
		if p.Site == v.Site {
			alive++
		} else if p.Answers {
			alive++
			answer = append(answer, p.Site)
		}
	}
	switch {
	case voters == 1 && alive == 1 && len(answer) == 0:
		return fmt.Errorf("%w: %s is the only voter: start its broker", ErrNoLoss, v.Site)
	case alive > voters/2 && v.Unfinished:
		return fmt.Errorf("%w: %d of %d former voters are there again (%v answer): stop them for good to go on with the recovery, "+
			"or leave this data and come back to them on empty data as after a wiped disk (cloudshare guide operator)", ErrNoLoss, alive, voters, answer)
	case alive > voters/2:
		return fmt.Errorf("%w: %d of %d voters are there (%v answer): start this broker, too", ErrNoLoss, alive, voters, answer)
	}
	return nil
}

// rewrite replaces snapshots and log by one snapshot: all that was stored, then
// the new epoch, with this member as the only voter.
func (s *survivor) rewrite(addr string, holdMs int64) error {
	rc := raft.DefaultConfig()
	rc.LocalID, rc.Logger = raft.ServerID(s.member.Site), raftLogger(s.Logger)
	_, trans := raft.NewInmemTransport(raft.ServerAddress(addr))
	defer trans.Close()
	f := &epochFSM{machine: s.machine(), site: s.member.Site, epoch: s.line.epoch, holdMs: holdMs}
	err := raft.RecoverCluster(rc, f, s.store, s.store, s.snaps, trans, raft.Configuration{
		Servers: []raft.Server{{ID: rc.LocalID, Address: transport.ServerAddress(s.member.Site, addr)}},
	})
	if err != nil {
		return fmt.Errorf("rewrite the log: %w", err)
	}
	return nil
}

// epochFSM begins an epoch behind the last entry.
type epochFSM struct {
	*machine
	site   string
	epoch  uint64
	holdMs int64
}

// Snapshot implements raft.FSM: RecoverCluster takes one, behind the last entry.
func (f *epochFSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	if err := coord.BeginEpoch(f.m, f.site, f.epoch, f.holdMs); err != nil {
		return nil, fmt.Errorf("%w: take another survivor", err)
	}
	return f.machine.Snapshot()
}

// prune removes the snapshots before the new one: raft would fall back to them,
// and so to the former epoch, if it could not read that.
func (s *survivor) prune() error {
	list, err := s.snaps.List()
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	dir := filepath.Join(s.Dir, "snapshots")
	for _, meta := range list[min(1, len(list)):] {
		if err := os.RemoveAll(filepath.Join(dir, meta.ID)); err != nil {
			return fmt.Errorf("remove old snapshot: %w", err)
		}
	}
	return relay.SyncDir(dir)
}
