package statecmd

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// stateCommand moves the federation's replicated state between coordination
// backends; `export` alone is about the archive.
func stateCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "state", Short: "Move the federation's state to another coordination backend",
		Long: `Move the replicated state, with all jobs and the ledger, to another coordination
backend or back, through a file. All brokers are stopped for it.

1. Stop the brokers of all sites.
2. From Raft: export at a majority of the voters, and bring the files to one
   site. From ZooKeeper: one file has everything. What was exported is sealed:
   brokers do not start on it any more.
3. Import there, with the configuration of the new backend. It begins a new
   epoch, in which nothing is assigned until all that ran before must have ended.
4. Start that broker, then have the others follow.

The whole way, typed: cloudshare guide operator. For the archive of ended
attempts see cloudshare export.`,
		Example: `  cloudshare state export fed.state --data-dir /var/lib/cloudshare
  cloudshare state show fed.state
  cloudshare state import lab-a.state lab-b.state --config /etc/cloudshare.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(stateExportCommand(a), stateImportCommand(a), stateShowCommand(a), stateReopenCommand(a))
	return cmd
}

// exported is what the commands show of a file.
type exported struct {
	File       string    `json:"file"`
	ID         string    `json:"id"`
	Federation string    `json:"federation"`
	Epoch      uint64    `json:"epoch"`
	Entry      uint64    `json:"entry"`
	StateHash  string    `json:"state_hash"`
	Backend    string    `json:"backend"`
	Site       string    `json:"site"`
	LastTerm   uint64    `json:"last_term,omitempty"`
	LastIndex  uint64    `json:"last_index,omitempty"`
	Voters     []string  `json:"voters,omitempty"`
	ExportedAt time.Time `json:"exported_at"`
	Version    string    `json:"version"`
}

func exportedIn(path string, h *statefile.Header) exported {
	return exported{
		File: path, ID: h.ID, Federation: uuid.UUID(config.ParseID(h.Federation)).String(), Epoch: h.Epoch,
		Entry: h.Entry, StateHash: h.StateHash,
		Backend: h.Backend, Site: h.Site, LastTerm: h.LastTerm, LastIndex: h.LastIndex, Voters: h.Voters,
		ExportedAt: h.ExportedAt, Version: h.Version,
	}
}

func (e exported) show(w io.Writer) {
	cli.Row(w, "file", e.File)
	cli.Row(w, "export", e.ID)
	cli.Row(w, "federation", e.Federation)
	cli.Row(w, "epoch", e.Epoch)
	cli.Row(w, "entry", e.Entry)
	cli.Row(w, "state hash", e.StateHash)
	cli.Row(w, "from", e.Backend+", copy of "+e.Site)
	if len(e.Voters) > 0 {
		cli.Row(w, "last term", e.LastTerm)
		cli.Row(w, "last index", e.LastIndex)
		cli.Row(w, "voters", strings.Join(e.Voters, " "))
	}
	cli.Row(w, "exported", &e.ExportedAt)
	cli.Row(w, "by version", e.Version)
}

func stateShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "show FILE", Short: "Check an exported state and say what it is", Args: cobra.ExactArgs(1),
		Example: "  cloudshare state show fed.state\n  head -n 2 fed.state    # without this program",
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := statefile.Open(args[0])
			if err != nil {
				return moveRefusal(err)
			}
			defer f.Close()
			e := exportedIn(args[0], &f.Header)
			return a.Show(e, e.show)
		},
	}
}

// moveRefusal gives what forbids a move its exit code.
func moveRefusal(err error) error {
	for _, kind := range []error{
		statefile.ErrExists, statefile.ErrDamaged, statefile.ErrNewFormat, statefile.ErrNotState,
		coord.ErrRunning, coord.ErrMoved, raftlog.ErrUnfinished, raftlog.ErrExistingData, raftlog.ErrIdentity,
		errRefusedMove, coord.ErrForeign, zk.ErrTree, zk.ErrVersion, zk.ErrDenied, zk.ErrDamaged, zk.ErrNoTree,
	} {
		if errors.Is(err, kind) {
			return cli.WithExit(cli.ExitRefused, err)
		}
	}
	return refusal(err)
}

// errRefusedMove is what else stands in the way of a move.
var errRefusedMove = errors.New("refused")
