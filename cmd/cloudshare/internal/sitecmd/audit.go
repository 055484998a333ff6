package sitecmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func auditCommand(a *cli.App) *cobra.Command {
	limit := 100
	cmd := cli.ShowCommand(a, "audit", "Show who did what at this site",
		"  cloudshare audit --limit 20\n  cloudshare audit who site-1.42\n  cloudshare audit who alice",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.AuditEntry], error) {
			return c.Audit(cmd.Context(), "", limit)
		}, showAudit)
	cmd.Long = `Show who did what at this site: the requests that changed something, or were to, the newest first. It takes the
operator's token. The record is in the broker's data_dir, 256 MiB of it at most; it leaves the site nowhere.`
	cmd.PersistentFlags().IntVar(&limit, "limit", limit, "the newest `N`, 1 to 1000")
	cmd.AddCommand(auditWhoCommand(a, &limit))
	return cmd
}

func auditWhoCommand(a *cli.App, limit *int) *cobra.Command {
	return &cobra.Command{
		Use: "who JOB|USER", Short: "Show who did something with a job, or what a user did", Args: cobra.ExactArgs(1),
		Example: "  cloudshare audit who site-1.42\n  cloudshare audit who alice",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			l, err := c.Audit(cmd.Context(), args[0], *limit)
			if err != nil {
				return err
			}
			return a.Show(l, func(w io.Writer) { showAudit(w, l) })
		},
	}
}

// refusal says what was refused, and why.
func refusal(e *wire.AuditEntry) string {
	var parts []string
	for _, part := range []string{e.Asked, e.Why} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	if e.More > 0 {
		text += fmt.Sprintf(" (the last of %d more in a minute)", e.More)
	}
	return text
}

func showAudit(w io.Writer, l wire.List[wire.AuditEntry]) {
	cli.Row(w, "TIME", "USER", "ROLE", "TOKEN", "STATUS", "ACTION", "TARGETS", "REFUSED")
	for _, e := range l.Items {
		cli.Row(w, e.Time, e.User, e.Role, e.Token, e.Status, e.Action, strings.Join(e.Targets, " "), refusal(&e))
	}
}
