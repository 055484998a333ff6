package main

import (
	"context"
	"encoding/hex"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
)

func (a *app) stateExportCommand() *cobra.Command {
	var path, dir string
	cmd := &cobra.Command{
		Use: "export FILE", Short: "Write a stopped federation's state into a file, and seal what it was read from", Args: cobra.ExactArgs(1),
		Long: `Write the replicated state of a stopped federation into a file that is not there
yet, and seal what it was read from: brokers do not start on it any more. Seals
are taken away with cloudshare state reopen.

On Raft every broker has a copy of its own: export at a majority of the voters,
which the command names. Which file is the newest the import sees by itself.

Refused while a broker runs.`,
		Example: `  cloudshare state export lab-a.state --data-dir /var/lib/cloudshare
  cloudshare state export lab-a.state --config /etc/cloudshare.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := recoverDir(path, dir, cmd)
			if err != nil {
				return err
			}
			if err = statefile.Absent(args[0]); err != nil {
				return moveRefusal(err)
			}
			h, err := a.exportRaft(cmd.Context(), data, args[0])
			if err != nil {
				return moveRefusal(err)
			}
			if err = a.show(exportedIn(args[0], h), exportedIn(args[0], h).show); err != nil {
				return err
			}
			if n := len(h.Voters); n > 1 {
				a.note("Sealed: %s. Export at %d of the %d voters, then import all files at one site: cloudshare state import FILE… --config FILE", data, n/2+1, n)
			} else {
				a.note("Sealed: %s. Then: cloudshare state import %s --config FILE", data, args[0])
			}
			return nil
		},
	}
	dataFlags(cmd, &path, &dir)
	return cmd
}

// dataFlags name a stopped broker's data, as recoverDir reads them.
func dataFlags(cmd *cobra.Command, path, dir *string) {
	cmd.Flags().StringVar(path, "config", "", "take data_dir from a broker's YAML `FILE`")
	cmd.Flags().StringVar(dir, "data-dir", "", "the stopped broker's data directory")
}

// raftData is the Raft side of a stopped broker's data; replica takes the state.
func (a *app) raftData(dir string, replica *node.Replica) raftlog.Offline {
	return raftlog.Offline{
		Dir: filepath.Join(dir, raftDir), Machine: func() coord.Machine { return replica },
		Logger: zerolog.New(a.err).With().Timestamp().Logger().Level(zerolog.WarnLevel),
	}
}

// exportRaft writes the state of a stopped broker's copy of the log.
func (a *app) exportRaft(ctx context.Context, dir, file string) (*statefile.Header, error) {
	replica := node.NewReplica()
	var h statefile.Header
	err := raftlog.Export(ctx, a.raftData(dir, replica), func(v raftlog.Survey) error {
		h = statefile.Header{ID: v.Moved, Backend: "raft", Site: v.Site, Epoch: v.Epoch, LastTerm: v.LastTerm, LastIndex: v.LastIndex}
		if v.Epoch > 0 {
			h.Lineage = hex.EncodeToString(v.Lineage[:])
		}
		for _, p := range v.Peers {
			if p.Voter {
				h.Voters = append(h.Voters, p.Site)
			}
		}
		return writeState(file, &h, replica, v.Federation)
	})
	return &h, err
}

// writeState completes the header with what the state says, and writes both.
func writeState(file string, h *statefile.Header, replica *node.Replica, federation [16]byte) error {
	frozen, err := replica.Snapshot()
	if err != nil {
		return err
	}
	defer frozen.Release()
	_, hash := replica.Hash()
	h.Federation, h.StateHash = hex.EncodeToString(federation[:]), hex.EncodeToString(hash[:])
	h.ExportedAt, h.Version = time.Now().UTC().Truncate(time.Second), version
	replica.View(func(s *fsm.State) { h.Entry, h.Term = s.Index(), s.Term() })
	return statefile.Create(file, *h, frozen)
}

func (a *app) stateReopenCommand() *cobra.Command {
	var path, dir string
	cmd := &cobra.Command{
		Use: "reopen", Short: "Take the seal of an export away: the federation goes on where it was", Args: cobra.NoArgs,
		Long: `Take the seal of an export away, so that the federation goes on where it was.
Only do this if the file was imported nowhere: otherwise there are two of it, and
tasks can run in both.`,
		Example: "  cloudshare state reopen --data-dir /var/lib/cloudshare",
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := recoverDir(path, dir, cmd)
			if err != nil {
				return err
			}
			replica := node.NewReplica()
			offline := a.raftData(data, replica)
			if _, err = raftlog.Inspect(cmd.Context(), offline); err != nil {
				return moveRefusal(err)
			}
			if err = nobodyAhead(cmd.Context(), replica); err != nil {
				return moveRefusal(err)
			}
			offline.Machine = func() coord.Machine { return node.NewReplica() }
			if err = raftlog.Reopen(cmd.Context(), offline); err != nil {
				return moveRefusal(err)
			}
			a.note("Open: %s. Start the broker; throw the exported file away", data)
			return nil
		},
	}
	dataFlags(cmd, &path, &dir)
	return cmd
}
