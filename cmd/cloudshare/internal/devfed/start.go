package devfed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func devStartCommand(a *cli.App) *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use: "start SITE --data-dir DIR", Short: "Start a killed site of a dev federation again", Args: cobra.ExactArgs(1),
		Long: `Start a site of a dev federation again, with its old ports and data. It goes on
in the background; the dev command of that folder ends it with the others.

Of several sites that were killed, the first cannot be ready before a majority
runs: start the others meanwhile. A site that runs and is not ready after a
minute is left to go on (exit 0), with a word on what it waits for.`,
		Example: "  cloudshare dev start site-2 --data-dir /tmp/fed",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := findSite(dataDir, args[0])
			if err != nil {
				return err
			}
			if err = s.awaitEnd(cmd.Context()); err != nil {
				return err
			}
			if err = freePorts([]*devSite{s}); err != nil {
				return err
			}
			founds, err := s.enter(cmd.Context())
			if err != nil {
				return err
			}
			if err := s.launch(founds, true); err != nil {
				return err
			}
			(&dev{App: a}).tellTokens([]*devSite{s})
			if err := awaitStarted(cmd.Context(), a, s, readyWait); err != nil {
				return err
			}
			return a.Show(siteRows([]*devSite{s})[0], func(w io.Writer) { cli.Row(w, s.Name, "http://"+s.HTTP) })
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "the federation's folder (required)")
	return cmd
}

// awaitStarted waits until the site is ready, and says meanwhile what for. One
// that lives and does not get so for all its patience was started all the same.
func awaitStarted(ctx context.Context, a *cli.App, s *devSite, patience time.Duration) error {
	hinted := false
	err := s.await(ctx, patience, func(why string) {
		a.Note("waiting for %s: %s", s.Name, why)
		if down := s.down(); len(down) > 0 && !hinted {
			hinted = true
			a.Note("a majority of the sites must run; %s can be started meanwhile: cloudshare dev start %s --data-dir %s",
				strings.Join(down, ", "), down[0], filepath.Dir(s.Dir))
		}
	})
	if !errors.Is(err, errNotReady) {
		return err
	}
	a.Note("%s; it goes on trying, as process %d", err, s.pid())
	return nil
}

// down returns the other sites of the folder whose brokers do not run.
func (s *devSite) down() (names []string) {
	configs, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Dir), "*", "config.yaml")) // its pattern is well-formed
	for _, path := range configs {
		other := &devSite{Dir: filepath.Dir(path)}
		if other.Name = filepath.Base(other.Dir); other.Name != s.Name && other.pid() == 0 {
			names = append(names, other.Name)
		}
	}
	return names
}

// endPatience is how long a broker that closed its API may take to end.
const endPatience = 30 * time.Second

// awaitEnd returns once no broker of the site runs. One that still serves is
// refused; one that has left or is stopping is waited for.
func (s *devSite) awaitEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		pid := s.pid()
		if pid == 0 {
			return nil
		}
		if conn, err := net.DialTimeout("tcp", s.HTTP, time.Second); err == nil {
			_ = conn.Close()
			return cli.WithExit(cli.ExitRefused, fmt.Errorf("%s runs already, as process %d", s.Name, pid))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cli.WithExit(cli.ExitRefused, fmt.Errorf("%s is still being stopped, as process %d: see %s", s.Name, pid, s.file("broker.log")))
		}
	}
}

// enter has the running sites invite one that has never joined. Where no site has data yet, it founds.
func (s *devSite) enter(ctx context.Context) (founds bool, err error) {
	if !s.fresh {
		return false, nil
	}
	members := s.others()
	if len(members) == 0 {
		return true, nil
	}
	running := slices.DeleteFunc(members, func(o *devSite) bool { return o.pid() == 0 })
	if len(running) == 0 {
		return false, cli.WithExit(cli.ExitRefused,
			fmt.Errorf("%s has no data yet, and no other site runs that could let it in: start one first", s.Name))
	}
	return false, invite(ctx, running, s)
}

// findSite reads a site's folder.
func findSite(dataDir, name string) (*devSite, error) {
	if dataDir == "" {
		return nil, cli.Usage("--data-dir is missing: the folder given to cloudshare dev")
	}
	if _, err := os.Stat(dataDir); err != nil {
		return nil, cli.Usage("--data-dir %s: %w", dataDir, err)
	}
	dataDir, err := realDir(dataDir)
	if err != nil {
		return nil, err
	}
	dir, err := validSiteDir(dataDir, name)
	if err != nil {
		return nil, err
	}
	s, err := readSite(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, cli.WithExit(cli.ExitNotFound, errors.New("no site "+name+" in "+dataDir))
	}
	return s, err
}
