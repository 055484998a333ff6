package statecmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// rotateWait bounds the giving away of a tree: at most some 20,000 znodes, each a round trip.
const rotateWait = 10 * time.Minute

// rotated is what the command shows.
type rotated struct {
	Path   string `json:"path"`
	User   string `json:"user"`
	Znodes int    `json:"znodes"`
}

func zkRotateCommand(a *cli.App) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "rotate", Short: "Give the tree to a new password alone", Args: cobra.NoArgs,
		Long: `Give every znode of the federation's tree to the first line of zk_auth alone, as
after a ban: who was expelled knows the former password. Brokers run meanwhile.

1. At each site that stays, write the new USER:PASSWORD into the file of zk_auth,
   before the line that is there, and restart the broker: it has both then.
2. At one site, run this command.
3. At each site, take the second line out of the file, and restart the broker.
   Then run this command once more: until then brokers wrote for both.`,
		Example: `  cloudshare zk rotate --config /etc/cloudshare.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if path == "" {
				return cli.Usage("name the broker's configuration: --config FILE")
			}
			place, err := inspectPlace(path, config.Config{})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), rotateWait)
			defer cancel()
			r := rotated{Path: place.String(), User: place.User}
			if r.Znodes, err = zk.Rotate(ctx, place, zerolog.Nop()); err != nil {
				return err
			}
			return a.Show(r, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "%d znodes at %s are %s's alone, by the first line of zk_auth.\n", r.Znodes, r.Path, r.User)
			})
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the broker's YAML `FILE`")
	return cmd
}
