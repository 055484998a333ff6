package daemon

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/notices"
)

// notifyKeyCommand returns `broker notify-key`.
func notifyKeyCommand(a *cli.App) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "notify-key [flags] [USER]", Short: "Print the key that a user's notices are signed with",
		Args: cobra.MaximumNArgs(1),
		Long: `Print the key that notices of a user's jobs are signed with, for who receives them:
it is a secret. Without USER it is that of the site's own jobs, which are submitted
without a user. It is made of notify.secret in the configuration, which this command
reads as the broker does, and asks no broker; who has one user's key can sign nothing
in another's name. With another notify.secret all keys are others.`,
		Example: `  cloudshare broker notify-key --config /etc/cloudshare/config.yaml alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			user := ""
			if len(args) > 0 {
				if user = args[0]; !access.ValidUser(user) {
					return cli.Usage("%q is no user's name: %s", user, access.UserForm)
				}
			}
			key, err := notifyKey(cmd, path, user)
			if err != nil {
				return err
			}
			return a.Show(map[string]string{"user": user, "key": key}, func(w io.Writer) { fmt.Fprintln(w, key) })
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read a YAML `FILE`")
	config.AddFlags(cmd.Flags())
	return cmd
}

func notifyKey(cmd *cobra.Command, path, user string) (string, error) {
	cfg, err := config.Load(path, cmd.Flags(), os.Environ)
	if err != nil {
		return "", err
	}
	told, err := cfg.ForNotices()
	switch {
	case err != nil:
		return "", err
	case len(told.Secret) == 0:
		return "", cli.Usage("notify.secret is missing: nothing is signed without it")
	}
	return notices.KeyText(notices.KeyOf(told.Secret, user)), nil
}
