package raftlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Follow has the member drop its log and snapshots, and join the epoch of the
// broker that is reached at the peer address addr when it starts next. Errors:
// ErrLocked, ErrNoData, coord.ErrForeign; ErrEpoch if that is no later epoch.
// An interrupted Recover or Follow does not bind it: nobody was of that epoch here.
func Follow(ctx context.Context, o Offline, addr string) error {
	lock, m, err := o.claim()
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	err = o.followEpoch(ctx, m, addr)
	if err = errors.Join(err, lock.Close()); err != nil {
		return fmt.Errorf("follow %s: %w", addr, err)
	}
	return nil
}

func (o Offline) followEpoch(ctx context.Context, m *member, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, timingOf(LAN).rpc)
	defer cancel()
	mine, former, err := m.lines()
	if err != nil {
		return fmt.Errorf("%w: %s/member.json: %w", ErrIdentity, o.Dir, err)
	}
	theirs, err := o.askLineage(ctx, m.Site, addr)
	if err != nil {
		return fmt.Errorf("ask the recovered broker: %w: start it first, and give its peer address", err)
	}
	switch {
	case theirs.federation != mine.federation:
		return theirs.admits(mine, addr)
	case theirs == mine && m.Unfinished == "" && len(m.Through) == 0:
		return fmt.Errorf("%w: this data is of epoch %d already: start its broker", ErrNoLoss, mine.epoch)
	case theirs != mine && theirs.epoch <= former.epoch:
		return fmt.Errorf("%w: %s is of epoch %d, this data of epoch %d: only a later one can be followed", ErrEpoch, addr, theirs.epoch, former.epoch)
	}
	m.beginStep(stepFollow, theirs, nil)
	m.Founder, m.Through, m.Moved, m.Origin = false, []string{addr}, "", ""
	return o.steps(
		step{"mark", func() error { return m.save(o.Dir) }},
		step{"log", o.dropLog},
		step{"snapshots", func() error { return os.RemoveAll(filepath.Join(o.Dir, "snapshots")) }},
		step{"sync", func() error { return relay.SyncDir(o.Dir) }},
		step{"done", func() error { m.endStep(); return m.save(o.Dir) }},
	)
}

// dropLog removes the log. Its newest entries go last: without the rest of the
// store they would be of no store.
func (o Offline) dropLog() error {
	return errors.Join(os.RemoveAll(filepath.Join(o.Dir, "raft.db")), os.RemoveAll(filepath.Join(o.Dir, "raft.wal")))
}

// askLineage asks who answers at an address.
func (o Offline) askLineage(ctx context.Context, site, addr string) (lineage, error) {
	nw := o.Net
	if nw == nil {
		nw = &relay.Network{}
	}
	a, err := dialer{&relay.Dialer{Net: nw, Site: site}}.join(ctx, relay.Peer{Addr: addr}, joinRequest{Who: true})
	if err != nil {
		return lineage{}, err
	}
	return parseLineage(a.Federation, a.Lineage, a.Epoch)
}
