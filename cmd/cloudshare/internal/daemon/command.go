// Package daemon opens the parts of one broker, connects them and runs them: `broker`.
// It also has `debug`, which asks the socket that a running broker listens on.
// No other package of the command may import it, but main.
package daemon

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// Command returns `broker`.
func Command(a *cli.App) *cobra.Command {
	var path string
	var check bool
	cmd := &cobra.Command{
		Use: "broker", Short: "Run a site's broker", Args: cobra.NoArgs,
		Long: `Run a site's broker.

On empty data it needs exactly one of --bootstrap (found a federation) and
--join (become a member of one); on existing data neither. Each flag can also
stand in the file of --config (data_dir for --data-dir) and in the environment
(CLOUDSHARE_DATA_DIR). Flags win over the environment, that over the file.
--check-config prints what would count and where it is from, and starts nothing;
exit 2 names the key that is wrong.

SIGUSR1 logs at level debug until it comes again.

SIGTERM and SIGINT stop the broker. Its tasks go on under their supervisors and
are found again at the next start, unless --stop-tasks is given.`,
		Example: `  cloudshare broker --site a --data-dir /var/lib/cloudshare --bootstrap \
    --peer 10.0.0.1:7701 --gossip 10.0.0.1:7702
  cloudshare broker --site b --data-dir /var/lib/cloudshare --join @b.invitation \
    --peer 10.0.0.2:7701 --gossip 10.0.0.2:7702`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := config.LoadSettings(path, cmd.Flags(), os.Environ)
			if err != nil {
				return err
			}
			if check {
				return showConfig(a, s)
			}
			if err = s.CheckFounding(); err != nil {
				return err
			}
			cfg, err := s.Settled()
			if err != nil {
				return err
			}
			if s.Sources["join"] == "flag" {
				if err = hideInvitation(cfg.Join); err != nil {
					return err
				}
			}
			invited, err := cfg.Invitation(a.In)
			if err != nil {
				return err
			}
			log := newLogger(a, cfg)
			defer louder(cfg, log)()
			return runBroker(cmd.Context(), cfg, invited, a.Version, log)
		},
	}
	cmd.Flags().BoolVar(&check, "check-config", false, "check the configuration, print it with its sources, and end")
	cmd.Flags().StringVar(&path, "config", "", "read a YAML `FILE`")
	config.AddFlags(cmd.Flags())
	cmd.AddCommand(notifyKeyCommand(a))
	return cmd
}

// newLogger writes to stderr: stdout is for data. The latest lines are held for a
// debug bundle. Its level is the process's, see louder.
func newLogger(a *cli.App, cfg config.Config) zerolog.Logger {
	out := a.Err
	if cfg.LogFormat == "console" {
		out = zerolog.ConsoleWriter{Out: a.Err, NoColor: !cli.IsTerminal(a.Err), TimeFormat: time.RFC3339}
	}
	return zerolog.New(io.MultiWriter(lastLines, out)).With().Timestamp().Str("site", cfg.Site).Logger()
}

// louder sets the process's log level and has SIGUSR1 switch between it and
// debug, until the returned function is called.
func louder(cfg config.Config, log zerolog.Logger) (end func()) {
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel
	}
	before := zerolog.GlobalLevel()
	zerolog.SetGlobalLevel(level)
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		defer close(done)
		for range signals {
			next := zerolog.DebugLevel
			if zerolog.GlobalLevel() == next {
				next = level
			}
			zerolog.SetGlobalLevel(next)
			log.WithLevel(zerolog.NoLevel).Stringer("log_level", next).Msg("log level changed")
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
		zerolog.SetGlobalLevel(before)
	}
}
