package statecmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
)

// importing is a run of `state import`.
type importing struct {
	*cli.App
	config     string
	hold       time.Duration
	incomplete bool

	cfg     config.Config
	into    stateBackend
	node    [16]byte
	files   []*statefile.File
	newest  *statefile.File
	replica *replica.Replica // with the state of the newest
}

// imported is what the command shows.
type imported struct {
	File       string `json:"file"`
	Federation string `json:"federation"`
	Epoch      uint64 `json:"epoch"` // the new one
	Entry      uint64 `json:"entry"`
	StateHash  string `json:"state_hash"` // before the epoch began
	Backend    string `json:"backend"`
	Site       string `json:"site"`
}

// importedSuffix is what a file's name ends with once it was imported.
const importedSuffix = ".imported"

func stateImportCommand(a *cli.App) *cobra.Command {
	m := importing{App: a}
	cmd := &cobra.Command{
		Use: "import FILE…", Short: "Begin a new epoch from an exported state", Args: cobra.MinimumNArgs(1),
		Long: `Begin a new epoch from exported states, of which the newest is taken. Run it at
one site, on the data of its stopped broker, with the configuration that the
broker will have. On Raft that site is the first and only voter; the others
follow with cloudshare recover --follow.

Everything stays: jobs, the ledger, sites. Nothing is assigned until all that ran
before must have ended: a lease and the margin, or --hold if tasks had stop
bounds longer than that. What ran at a site for others runs again, as after
a loss.

Refused if a broker of the federation runs, if there is a state already, if the
files are damaged, of another federation or of a newer version, or if they are
of less than a majority of the voters: then jobs that were acknowledged may be
missing, and --incomplete takes what there is. Imported files get the name
FILE.imported. If it is interrupted, run it again.`,
		Example: `  cloudshare state import lab-a.state lab-b.state --config /etc/cloudshare.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if m.config == "" {
				return cli.Usage("name the configuration that this site's broker will have: --config FILE")
			}
			cfg, err := config.Load(m.config, cmd.Flags(), os.Environ)
			if err != nil {
				return err
			}
			m.cfg = cfg
			if m.into, err = backendOf(a, cfg); err != nil {
				return err
			}
			return moveRefusal(m.run(cmd.Context(), args))
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.config, "config", "", "the broker's YAML `FILE`: its data, its peer address, the backend")
	cli.DurationVar(f, &m.hold, "hold", 0, "assign nothing for so long (at least a lease and the margin)")
	f.BoolVar(&m.incomplete, "incomplete", false, "take what there is: acknowledged jobs may be missing")
	return cmd
}

func (m *importing) run(ctx context.Context, paths []string) error {
	if limit := command.MaxTimeoutMs * time.Millisecond; m.hold < 0 || m.hold > limit {
		return cli.Usage("--hold %s: must be from 0 to %s", m.hold, limit)
	}
	defer func() {
		for _, f := range m.files {
			_ = f.Close()
		}
	}()
	if err := m.read(paths); err != nil {
		return err
	}
	if err := m.older(); err != nil {
		return err
	}
	journal, err := m.site()
	if err != nil {
		return err
	}
	defer journal.Close()
	if err = nobodyRuns(ctx, m.replica); err != nil {
		return err
	}
	index, hash := m.replica.Hash()
	err = m.into.found(ctx, m.replica, &m.newest.Header, founder{m.cfg.Site, m.node, m.cfg.Peer, m.hold.Milliseconds()})
	if err != nil {
		return err
	}
	for _, f := range m.files {
		if err = statefile.Rename(f.Path, f.Path+importedSuffix); err != nil {
			return fmt.Errorf("it is imported, but its name is still %s: %w", f.Path, err)
		}
	}
	out := imported{
		File: m.newest.Path + importedSuffix, Federation: uuid.UUID(config.ParseID(m.newest.Federation)).String(),
		Epoch: m.newest.Epoch + 1,
		Entry: index, StateHash: hex.EncodeToString(hash[:]), Backend: m.cfg.Coordination, Site: m.cfg.Site,
	}
	if err = m.Show(out, out.show); err != nil {
		return err
	}
	if m.cfg.Coordination == config.ZooKeeper {
		m.Note("Imported into %s. Start the brokers of all sites with coordination: zookeeper, zk and zk_auth in their configuration, on the data that they have", m.into)
		return nil
	}
	m.Note("Imported: %s is the only voter of a new epoch. Start its broker, then at each other site: cloudshare recover --data-dir DIR --follow %s --yes",
		m.cfg.Site, m.cfg.Peer)
	return nil
}

func (i imported) show(w io.Writer) {
	cli.Row(w, "file", i.File)
	cli.Row(w, "federation", i.Federation)
	cli.Row(w, "epoch", i.Epoch)
	cli.Row(w, "entry", i.Entry)
	cli.Row(w, "state hash", i.StateHash)
	cli.Row(w, "into", i.Backend+", first at "+i.Site)
}

// read opens the files, takes the newest, and restores its state.
func (m *importing) read(paths []string) error {
	for _, path := range paths {
		f, err := statefile.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			if _, there := os.Lstat(path + importedSuffix); there == nil {
				return fmt.Errorf("%w: %s was imported already (it is %s now): start the broker where it was; only if that is lost for good, "+
					"with its data, give the file its name back and import it again", errRefusedMove, path, path+importedSuffix)
			}
		}
		if err != nil {
			return err
		}
		m.files = append(m.files, f)
	}
	if err := m.choose(); err != nil {
		return err
	}
	m.replica = replica.NewReplica()
	if err := m.replica.Restore(m.newest.State()); err != nil {
		return fmt.Errorf("%w: %s: %w", errRefusedMove, m.newest.Path, err)
	}
	var federation [16]byte
	m.replica.View(func(s *fsm.State) { federation = s.Federation() })
	index, hash := m.replica.Hash()
	if index != m.newest.Entry || command.EpochOf(index) != m.newest.Epoch ||
		hex.EncodeToString(hash[:]) != m.newest.StateHash || federation != config.ParseID(m.newest.Federation) {
		return fmt.Errorf("%s: %w: header and state do not belong together", m.newest.Path, statefile.ErrDamaged)
	}
	return nil
}

// choose finds the newest file, and whether the files have all that was
// acknowledged: a majority of its voters is among them (raftlog.Export).
func (m *importing) choose() error {
	m.newest = m.files[0]
	for _, f := range m.files[1:] {
		n := m.newest
		if f.Federation != n.Federation || f.Epoch != n.Epoch || f.Lineage != n.Lineage || f.Backend != n.Backend {
			return fmt.Errorf("%w: %s and %s are not of one federation, epoch and backend: import what belongs together", errRefusedMove, n.Path, f.Path)
		}
		if f.LastTerm > n.LastTerm || f.LastTerm == n.LastTerm && f.LastIndex > n.LastIndex {
			m.newest = f
		}
	}
	voters := m.newest.Voters
	missing := slices.DeleteFunc(slices.Clone(voters), func(site string) bool {
		return slices.ContainsFunc(m.files, func(f *statefile.File) bool { return f.Site == site })
	})
	if n := len(voters) - len(missing); len(voters) > 0 && n <= len(voters)/2 && !m.incomplete {
		return fmt.Errorf("%w: these are copies of %d of the %d voters, and only a majority has everything that was acknowledged: export at %s, too, "+
			"and name all files; if their data are lost for good, --incomplete", errRefusedMove, n, len(voters), strings.Join(missing, " or "))
	}
	return nil
}

// site opens the journal of the site that goes on first: it must be one that the
// state knows. The journal keeps a broker from starting meanwhile.
func (m *importing) site() (*record.Journal, error) {
	if _, err := os.Stat(filepath.Join(m.cfg.DataDir, "journal.db")); err != nil {
		return nil, cli.Usage("no broker's data in %s: import at a site of the federation, with its configuration: %w", m.cfg.DataDir, err)
	}
	journal, err := record.OpenJournal(m.cfg.DataDir)
	if errors.Is(err, record.ErrDataInUse) {
		return nil, fmt.Errorf("%w: %w", errRefusedMove, err)
	}
	if err != nil {
		return nil, err
	}
	key, err := identity.Load(filepath.Join(m.cfg.DataDir, config.KeyFile))
	if err == nil {
		m.node = key.Public().Node()
		err = journal.Identify(m.cfg.Site, m.node, true)
	}
	if err == nil {
		err = m.replica.Admit(m.cfg.Site, m.node)
	}
	known := false
	m.replica.View(func(s *fsm.State) { _, known = s.Site(m.cfg.Site) })
	if err == nil && !known {
		err = fmt.Errorf("the state knows no site %s", m.cfg.Site)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s is not a site of this federation: %w", errRefusedMove, m.cfg.DataDir, err), journal.Close())
	}
	return journal, nil
}

// older refuses a state that this site has left behind.
func (m *importing) older() error {
	r, z, err := config.DataStates(m.cfg.DataDir)
	has := z.Epoch
	if m.cfg.Coordination == config.ZooKeeper { // Raft looks at its own data
		has = max(has, r.Epoch)
	}
	if err == nil && has > m.newest.Epoch {
		err = fmt.Errorf("%w: %s is of epoch %d, and this site has been in epoch %d since: export the federation as it is now", errRefusedMove, m.newest.Path, m.newest.Epoch, has)
	}
	return err
}
