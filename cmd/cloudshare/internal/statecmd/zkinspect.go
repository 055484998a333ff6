package statecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// inspectWait bounds the reading of a tree.
const inspectWait = 15 * time.Second

func zkCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "zk", Short: "Look at a federation's tree in ZooKeeper, and replace its password", Args: cobra.NoArgs,
		Example: "  cloudshare zk inspect --config /etc/cloudshare.yaml",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(zkInspectCommand(a), zkRotateCommand(a))
	return cmd
}

func zkInspectCommand(a *cli.App) *cobra.Command {
	var path string
	var entries int
	cfg := config.Default()
	cfg.Coordination = config.ZooKeeper
	cmd := &cobra.Command{
		Use: "inspect", Short: "Print the tree, its snapshot and the newest entries", Args: cobra.NoArgs,
		Long: `Print whose tree it is, who leads, who is connected, the snapshot, what is kept
of the log and the newest entries; and what is not as it must be, by its path
(exit 1). It reads only, and brokers may run meanwhile.

The tree's location comes from --config or the flags.`,
		Example: `  cloudshare zk inspect --config /etc/cloudshare.yaml
  cloudshare zk inspect --zk zk1:2281,zk2:2281,zk3:2281/cloudshare --zk-tls --zk-auth /etc/cloudshare/digest --entries 20`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			place, err := inspectPlace(path, cfg)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), inspectWait)
			defer cancel()
			r, err := zk.Inspect(ctx, place, entries, zerolog.Nop())
			if err != nil {
				return err
			}
			if err := a.Show(r, func(w io.Writer) { showTree(w, r) }); err != nil || len(r.Faults) == 0 {
				return err
			}
			return &zkFaults{r.Faults}
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "config", "", "read a broker's YAML `FILE`")
	f.IntVar(&entries, "entries", 5, "how many of the newest entries to show, at most 1000")
	f.StringVar(&cfg.ZK, "zk", "", "host:port,… of the ensemble's servers and the path of the federation in it")
	f.StringVar(&cfg.ZKAuth, "zk-auth", "", "file with one line USER:PASSWORD")
	f.BoolVar(&cfg.ZKTLS, "zk-tls", false, "TLS to the servers")
	f.BoolVar(&cfg.ZKInsecure, "zk-insecure", false, "plain connections to servers off loopback")
	f.StringVar(&cfg.ZKTLSCA, "zk-tls-ca", "", "certificates (PEM) that vouch for the servers; empty = the system's")
	f.StringVar(&cfg.ZKTLSCert, "zk-tls-cert", "", "certificate (PEM) to show to the servers")
	f.StringVar(&cfg.ZKTLSKey, "zk-tls-key", "", "its private key (PEM)")
	return cmd
}

// zkFaults says that the tree is not as it must be.
type zkFaults struct{ faults []string }

// Error implements error.
func (f *zkFaults) Error() string { return "the tree is damaged: " + strings.Join(f.faults, "; ") }

// inspectPlace returns where the tree is: a broker's configuration says, or the flags.
func inspectPlace(path string, flags config.Config) (zk.Place, error) {
	if path == "" {
		if err := flags.CheckCoordination(); err != nil {
			return zk.Place{}, err
		}
		return flags.ZKPlace()
	}
	if flags.ZK != "" || flags.ZKAuth != "" {
		return zk.Place{}, cli.Usage("--config and --zk: the file says where the tree is; give one of them")
	}
	cfg, err := config.Load(path, pflag.NewFlagSet("", pflag.ContinueOnError), os.Environ)
	switch {
	case err != nil:
		return zk.Place{}, err
	case cfg.Coordination != config.ZooKeeper:
		return zk.Place{}, cli.Usage("%s: its federation is on %s, there is no tree", path, cfg.Coordination)
	}
	return cfg.ZKPlace()
}

// dashed returns how the other commands write an id.
func dashed(id string) string {
	u, err := uuid.Parse(id)
	if err != nil {
		return id
	}
	return u.String()
}

func showTree(w io.Writer, r *zk.Report) {
	held := "its session lives"
	if !r.Lead.Held {
		held = "its session is over: nobody leads"
	}
	cli.Row(w, "tree", r.Path)
	cli.Row(w, "federation", dashed(r.Federation))
	cli.Row(w, "epoch", r.Epoch)
	if r.Lead.Moved != "" {
		cli.Row(w, "sealed", "by export "+r.Lead.Moved+": the federation goes on elsewhere")
	}
	cli.Row(w, "leader", fmt.Sprintf("%s in term %d, %s", cli.Cell(r.Lead.Site), r.Lead.Term, held))
	cli.Row(w, "snapshot", fmt.Sprintf("of entry %d, %d bytes in %d chunks", r.Snapshot.Entry, r.Snapshot.Bytes, r.Snapshot.Chunks))
	cli.Row(w, "log", fmt.Sprintf("entries %d to %d, %d parts of long ones", r.Log.First, r.Log.Last, r.Log.Parts))
	cli.Row(w, "znodes", r.Znodes)
	cli.Row(w)
	cli.Row(w, "SITE", "VOTER", "CONNECTED", "NODE")
	for _, m := range r.Members {
		cli.Row(w, m.Site, cli.YesNo(m.Voter), cli.YesNo(m.Connected), m.Node)
	}
	cli.Row(w)
	cli.Row(w, "ENTRY", "ORDERED", "TERM", "SIGNED BY", "BYTES", "COMMANDS")
	for _, e := range r.Entries {
		cli.Row(w, e.Number, e.Ordered.Local().Format(time.DateTime), e.Term, cmp.Or(e.By, "-"), e.Bytes,
			strings.Join(e.Commands, ", "))
	}
}
