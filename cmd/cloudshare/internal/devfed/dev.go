// Package devfed runs a whole federation on one machine: `dev`. Each broker is a
// process of its own, started from this program; the package never opens a broker
// itself.
package devfed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/access"
)

// maxDevSites bounds `dev`: every site is a process with its own logs.
const maxDevSites = 64

// dev is a federation on this machine.
type dev struct {
	*cli.App
	sites    int
	http     string
	httpSet  bool // --http was given: it wins over what the data say
	cores    int
	coresSet bool
	dataDir  string
	given    bool // the folder is the user's: never deleted
	keep     bool
	sample   bool

	contain    string   // whose tasks run in sandboxes
	share      []string // folders that they see
	sandboxSet bool     // one of the two flags was given

	coordination    string
	coordinationSet bool          // the flag was given: it must agree with the data
	place, auth     string        // of an ensemble of the user's own: none is started
	zk              *devZooKeeper // nil on Raft, and on the user's own
}

// Command returns `dev`.
func Command(a *cli.App) *cobra.Command {
	d := &dev{App: a}
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a whole federation on this machine", Args: cobra.NoArgs,
		Long: `Run a whole federation on this machine: brokers site-1, site-2, … as child
processes on loopback, until SIGINT or SIGTERM ends them and their tasks.

Data go to a temporary folder that is removed at the end, or to --data-dir,
which is never deleted and can be started again. Each site's API asks for the
token in D/SITE/token; the other commands find it while dev runs. With --coordination zookeeper a server
of Debian's ZooKeeper runs beside the brokers. A broker that is killed stays
down; start it again with: cloudshare dev start SITE --data-dir DIR

Keys of the broker in the environment, such as CLOUDSHARE_MIN_FREE=0, count for
all sites, but for those that dev sets itself (addresses, folders, cores).`,
		Example: `  cloudshare dev
  cloudshare dev --sites 5 --cores 1 --http 127.0.0.1:8800 --data-dir /tmp/fed
  cloudshare dev --share /data/sets
  cloudshare dev --coordination zookeeper`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.httpSet, d.coresSet = cmd.Flags().Changed("http"), cmd.Flags().Changed("cores")
			d.sandboxSet = cmd.Flags().Changed("sandbox") || cmd.Flags().Changed("share")
			d.coordinationSet = cmd.Flags().Changed("coordination")
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.sites, "sites", 3, "number of sites")
	f.StringVar(&d.http, "http", "127.0.0.1:7700", "API of the first site; the others follow on the next ports")
	f.IntVar(&d.cores, "cores", 2, "cores of each site")
	f.StringVar(&d.dataDir, "data-dir", "", "keep all data in this folder")
	f.BoolVar(&d.keep, "keep", false, "do not remove the temporary folder at the end")
	f.BoolVar(&d.sample, "sample", false, "submit a small workload and show who runs what for whom")
	f.StringVar(&d.contain, "sandbox", "", "whose tasks run in sandboxes: foreign (the default), all or off")
	f.StringSliceVar(&d.share, "share", nil, "folder that tasks in sandboxes see and may write, at the same path")
	f.StringVar(&d.coordination, "coordination", config.Raft, "where the log is: raft, or zookeeper (starts a server of the Debian package)")
	f.StringVar(&d.place, "zk", "", "with --coordination zookeeper: use this ensemble (host:port,…/path) instead")
	f.StringVar(&d.auth, "zk-auth", "", "with --zk: file with one line USER:PASSWORD")
	cmd.AddCommand(devStartCommand(a))
	return cmd
}

// run starts the sites, stays until ctx ends, and ends them.
func (d *dev) run(ctx context.Context) (err error) {
	host, port, err := d.check()
	if err != nil {
		return err
	}
	if err = d.openDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.closeDir()) }()
	sites, err := d.plan(host, port)
	if err != nil {
		return err
	}
	if err := freePorts(sites); err != nil {
		return err
	}
	d.Note("starting %d sites in %s", len(sites), d.dataDir)
	if err := d.startZooKeeper(ctx); err != nil {
		return err
	}
	defer d.stopZooKeeper()
	defer d.stopSites(sites)
	for _, s := range sites {
		s.backend = d.backendKeys()
	}
	d.tellTokens(sites)
	defer d.forgetTokens(sites)
	if err := d.start(ctx, sites); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while starting: that is no fault
		}
		return err
	}
	d.table(sites)
	if d.sample {
		if err := d.runSample(ctx, sites); err != nil && ctx.Err() == nil {
			d.Note("sample: %s", cli.Explain(err))
		}
	}
	<-ctx.Done()
	d.Note("stopping brokers and tasks")
	return nil
}

// check judges the flags.
func (d *dev) check() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(d.http)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	switch ip := net.ParseIP(host); {
	case err != nil || port < 1:
		return "", 0, cli.Usage("--http %q: must be HOST:PORT", d.http)
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return "", 0, cli.Usage("--http %s: dev runs on loopback only, e.g. 127.0.0.1:7700", d.http)
	case d.coordination != config.Raft && d.coordination != config.ZooKeeper:
		return "", 0, cli.Usage("--coordination %q: must be raft or zookeeper", d.coordination)
	case (d.place == "") != (d.auth == "") || d.place != "" && d.coordination != config.ZooKeeper:
		return "", 0, cli.Usage("--zk and --zk-auth belong together, and to --coordination zookeeper")
	case d.sites < 1 || d.sites > maxDevSites:
		return "", 0, cli.Usage("--sites %d: must be 1 to %d", d.sites, maxDevSites)
	case d.cores < 1 || d.cores > 1024:
		return "", 0, cli.Usage("--cores %d: must be 1 to 1024", d.cores)
	case port+2*d.sites-1 > 65535:
		return "", 0, cli.Usage("--http %s: %d sites need two ports each, up to %d", d.http, d.sites, port+2*d.sites-1)
	}
	return host, port, nil
}

func (d *dev) openDir() (err error) {
	d.given = d.dataDir != ""
	if !d.given {
		if d.dataDir, err = os.MkdirTemp("", "cloudshare-dev-"); err != nil {
			return fmt.Errorf("make data folder: %w", err)
		}
	}
	d.dataDir, err = realDir(d.dataDir)
	return err
}

// realDir makes the folder and returns it without links, as /proc shows it.
func realDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make data folder: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find data folder: %w", err)
	}
	return filepath.EvalSymlinks(abs)
}

func (d *dev) closeDir() error {
	if d.given {
		return nil
	}
	if d.keep {
		d.Note("data are in %s", d.dataDir)
		return nil
	}
	if err := os.RemoveAll(d.dataDir); err != nil {
		return fmt.Errorf("remove data folder: %w", err)
	}
	return nil
}

// table says where everything is and what to type next.
func (d *dev) table(sites []*devSite) {
	_ = d.Show(siteRows(sites), func(w io.Writer) {
		cli.Row(w, "SITE", "HTTP", "PEER", "CORES", "TOKEN", "LOG")
		for _, s := range sites {
			cli.Row(w, s.Name, "http://"+s.HTTP, s.Peer, s.Cores, s.file(access.OperatorFile), s.file("broker.log"))
		}
	})
	env := ""
	if addr := "http://" + sites[0].HTTP; addr != cli.DefaultAddr {
		env = "CLOUDSHARE_ADDR=" + addr + " "
	}
	d.Note(`
try:   %scloudshare submit --wait --count 10 -- sleep 2
       %scloudshare jobs
       %scloudshare sites
look:  http://%s/ with the token of %s
read:  http://%s/docs
stop:  Ctrl-C ends the brokers and their tasks`, env, env, env, sites[0].HTTP, sites[0].Name, sites[0].HTTP)
}

// siteRows returns the table for programs.
func siteRows(sites []*devSite) []map[string]any {
	var out []map[string]any
	for _, s := range sites {
		out = append(out, map[string]any{
			"site": s.Name, "http": "http://" + s.HTTP, "peer": s.Peer, "cores": s.Cores, "dir": s.Dir,
			"token_file": s.file(access.OperatorFile),
		})
	}
	return out
}
