package main

import (
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/node"
)

func (a *app) brokerCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "broker", Short: "Run a site's broker", Args: cobra.NoArgs,
		Long: `Run a site's broker.

On empty data it needs exactly one of --bootstrap (found a federation) and
--join (become a member of one); on existing data neither. Each flag can also
stand in the file of --config (data_dir for --data-dir) and in the environment
(CLOUDSHARE_DATA_DIR). Flags win over the environment, that over the file.

SIGTERM and SIGINT stop the broker. Its tasks go on under their supervisors and
are found again at the next start, unless --stop-tasks is given.`,
		Example: `  cloudshare broker --site a --data-dir /var/lib/cloudshare --bootstrap
  cloudshare broker --site b --data-dir /var/lib/cloudshare --join 10.0.0.1:7701 \
    --http 10.0.0.2:7700 --peer 10.0.0.2:7701 --insecure`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path, cmd.Flags(), os.Environ)
			if err != nil {
				return err
			}
			if err := cfg.checkFounding(); err != nil {
				return err
			}
			return runBroker(cmd.Context(), cfg, a.logger(cfg))
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read a YAML `FILE`")
	configFlags(cmd.Flags())
	return cmd
}

// logger writes to stderr: stdout is for data.
func (a *app) logger(cfg Config) zerolog.Logger {
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel
	}
	out := a.err
	if cfg.LogFormat == "console" {
		out = zerolog.ConsoleWriter{Out: a.err, NoColor: !isTerminal(a.err), TimeFormat: time.RFC3339}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Str("site", cfg.Site).Logger()
}

// parseMemory reads a quantity as jobs write it.
func parseMemory(text string) (int64, error) {
	mib, ok := node.ParseMemory(text)
	if !ok {
		return 0, usage("memory %q: must be a quantity such as 8Gi, or 0 for all", text)
	}
	return mib, nil
}
