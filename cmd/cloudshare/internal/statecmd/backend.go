package statecmd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
	"github.com/cloudshare/cloudshare/node/coord/zk"
	"github.com/cloudshare/cloudshare/node/replica"
)

// stateBackend is the coordination backend of a stopped federation, as one site's broker uses it.
type stateBackend interface {
	fmt.Stringer
	// export seals the state and writes it into a file.
	export(ctx context.Context, file string) (*statefile.Header, error)
	// reopen takes the seal away.
	reopen(ctx context.Context) error
	// found begins the epoch after the header's with a site, from the state in the
	// replica, which it uses up.
	found(ctx context.Context, replica *replica.Replica, h *statefile.Header, first founder) error
}

// founder is the site that goes on first.
type founder struct {
	site   string
	node   [16]byte
	peer   string
	holdMs int64
}

// backendFromFlags returns the backend that the flags name.
func backendFromFlags(a *cli.App, path, dir string, cmd *cobra.Command) (stateBackend, error) {
	cfg := config.Config{Coordination: config.Raft}
	var err error
	if cfg.DataDir, err = recoverDir(path, dir, cmd); err == nil && path != "" {
		cfg, err = config.Load(path, cmd.Flags(), os.Environ)
	}
	if err != nil {
		return nil, err
	}
	switch on, err := config.DataBackend(cfg.DataDir); {
	case err != nil:
		return nil, err
	case on == config.ZooKeeper && cfg.Coordination == config.Raft:
		return nil, cli.Usage(
			"data in %s are on zookeeper, and the state is not in them: give the configuration that its broker has there, --config FILE",
			cfg.DataDir,
		)
	}
	return backendOf(a, cfg)
}

// backendOf returns the backend that a configuration names.
func backendOf(a *cli.App, cfg config.Config) (stateBackend, error) {
	if cfg.Coordination == config.Raft {
		return onRaftData{a, cfg.DataDir}, nil
	}
	place, err := cfg.ZKPlace()
	return onTree{a, place, cfg.Site, cfg.DataDir}, err
}

// newMoveLog returns where a backend's own warnings go.
func newMoveLog(a *cli.App) zerolog.Logger {
	return zerolog.New(a.Err).With().Timestamp().Logger().Level(zerolog.WarnLevel)
}

// writeState completes the header with what the state says, and writes both.
func writeState(file, version string, h *statefile.Header, replica *replica.Replica, federation,
	lineage [16]byte,
) error {
	frozen, err := replica.Snapshot()
	if err != nil {
		return err
	}
	defer frozen.Release()
	_, hash := replica.Hash()
	h.Federation, h.StateHash = hex.EncodeToString(federation[:]), hex.EncodeToString(hash[:])
	if h.Epoch > 0 {
		h.Lineage = hex.EncodeToString(lineage[:])
	}
	h.ExportedAt, h.Version = time.Now().UTC().Truncate(time.Second), version
	replica.View(func(s *fsm.State) { h.Entry, h.Term = s.Index(), max(h.Term, s.Term()) })
	return statefile.Create(file, *h, frozen)
}

// onRaftData is a broker's copy of the log.
type onRaftData struct {
	*cli.App
	dir string // of the broker
}

// String implements fmt.Stringer.
func (r onRaftData) String() string { return r.dir }

func (r onRaftData) offline(replica *replica.Replica) raftlog.Offline {
	o := raftlog.Offline{
		Dir: filepath.Join(r.dir, config.RaftDir), Machine: func() coord.Machine { return replica },
		Logger: newMoveLog(r.App),
	}
	// Without, nobody can be asked; the data say what is wrong with them.
	if who, err := credentials.Of(r.dir); err == nil {
		o.Net = who.Net
	}
	return o
}

func (r onRaftData) export(ctx context.Context, file string) (*statefile.Header, error) {
	replica := replica.NewReplica()
	var h statefile.Header
	err := raftlog.Export(ctx, r.offline(replica), func(v raftlog.Survey) error {
		h = statefile.Header{
			ID: v.Moved, Backend: config.Raft, Site: v.Site, Epoch: v.Epoch, Term: v.LastTerm,
			LastTerm: v.LastTerm, LastIndex: v.LastIndex,
		}
		for _, p := range v.Peers {
			if p.Voter {
				h.Voters = append(h.Voters, p.Site)
			}
		}
		return writeState(file, r.Version, &h, replica, v.Federation, v.Lineage)
	})
	return &h, err
}

func (r onRaftData) reopen(ctx context.Context) error {
	first := replica.NewReplica()
	if _, err := raftlog.Inspect(ctx, r.offline(first)); err != nil {
		return err
	}
	if err := nobodyAhead(ctx, first); err != nil {
		return err
	}
	return raftlog.Reopen(ctx, r.offline(replica.NewReplica()))
}

func (r onRaftData) found(_ context.Context, replica *replica.Replica, h *statefile.Header, first founder) error {
	f := raftlog.Founding{
		Site: first.site, Node: first.node, Federation: config.ParseID(h.Federation), Epoch: h.Epoch,
		Lineage: config.ParseID(h.Lineage),
		Term:    h.Term, Origin: h.ID, Addr: first.peer, HoldMs: first.holdMs,
	}
	if h.Lineage == "" {
		f.Lineage = f.Federation
	}
	return raftlog.Found(r.offline(replica), f)
}

// onTree is the federation's tree in an ensemble.
type onTree struct {
	*cli.App
	place zk.Place
	site  string // whose configuration it is
	dir   string // of that site's broker
}

// String implements fmt.Stringer.
func (t onTree) String() string { return t.place.String() }

// visitor is this site, as it works on the tree. Without its key it believes the tree, and signs nothing.
func (t onTree) visitor(m coord.Machine) zk.Visitor {
	v := zk.Visitor{Place: t.place, Machine: m, Logger: newMoveLog(t.App), Site: t.site}
	if who, err := credentials.Of(t.dir); err == nil {
		v.Identity = who.Net.Identity
	}
	return v
}

func (t onTree) export(ctx context.Context, file string) (*statefile.Header, error) {
	replica := replica.NewReplica()
	var h statefile.Header
	err := zk.Export(ctx, t.visitor(replica), func(s zk.Sealed) error {
		h = statefile.Header{ID: s.Moved, Backend: config.ZooKeeper, Site: t.site, Epoch: s.Epoch, Term: s.Term}
		return writeState(file, t.Version, &h, replica, s.Federation, s.Lineage)
	})
	return &h, err
}

func (t onTree) reopen(ctx context.Context) error {
	first := replica.NewReplica()
	return zk.Reopen(ctx, t.visitor(first), func(s zk.Sealed) error {
		if has, err := config.LatestState(t.dir); err != nil || has.Epoch > s.Epoch {
			return errors.Join(
				err,
				fmt.Errorf("%w: this site has been in epoch %d since, the tree is of epoch %d", errRefusedMove, has.Epoch, s.Epoch),
			)
		}
		return nobodyAhead(ctx, first)
	})
}

func (t onTree) found(ctx context.Context, replica *replica.Replica, h *statefile.Header, first founder) error {
	if h.Epoch >= command.MaxEpoch {
		return fmt.Errorf("%w: epoch %d is the last", errRefusedMove, h.Epoch)
	}
	if err := coord.BeginEpoch(replica, first.site, h.Epoch+1, first.holdMs); err != nil {
		return err
	}
	frozen, err := replica.Snapshot()
	if err != nil {
		return err
	}
	defer frozen.Release()
	by := t.visitor(replica)
	s := zk.Seed{
		Federation: config.ParseID(h.Federation), Epoch: h.Epoch + 1, Term: h.Term, Origin: h.ID,
		Entry: replica.Index(), Site: t.site,
	}
	if by.Identity != nil {
		s.By = by.Identity.Sign
	}
	_, _ = rand.Read(s.Lineage[:]) // never fails
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		failed := frozen.Write(w)
		written <- errors.Join(failed, w.CloseWithError(failed))
	}()
	s.State = r
	err = zk.Found(ctx, t.place, s, newMoveLog(t.App))
	_ = r.CloseWithError(err)
	if cause := <-written; err == nil {
		err = cause
	}
	return err
}
