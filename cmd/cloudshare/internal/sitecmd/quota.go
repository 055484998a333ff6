package sitecmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func quotaCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := cli.ShowCommand(a, "quota", "Show what the site uses of its quotas", "  cloudshare quota\n  cloudshare quota --all\n  cloudshare quota -o json",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.SiteQuotas], error) {
			return c.Quotas(cmd.Context(), all)
		},
		func(w io.Writer, l wire.List[wire.SiteQuotas]) {
			if all {
				showAllQuotas(w, l)
				return
			}
			for _, s := range l.Items {
				showQuotas(w, s)
			}
		})
	cmd.Long = `Show what the site uses of its quotas.

Each site has an equal part of what the federation bears, whatever the others
use: limits change only as sites join and go. A job beyond one is refused
(exit code 5); of what is kept of ended jobs the site's own oldest go.`
	cmd.AddCommand(userQuotasCommand(a), setUserQuotaCommand(a))
	cmd.Flags().BoolVar(&all, "all", false, "each site, in one line")
	return cmd
}

func showQuotas(w io.Writer, s wire.SiteQuotas) {
	cli.Row(w, "QUOTA", "USED", "LIMIT", "FULL", "MEANING")
	for _, q := range s.Quotas {
		cli.Row(w, q.Quota, q.Used, q.Limit, usedPercent(q), q.Meaning)
	}
}

// showAllQuotas has a column for each quota.
func showAllQuotas(w io.Writer, l wire.List[wire.SiteQuotas]) {
	for i, s := range l.Items {
		head, line := []any{"SITE"}, []any{s.Site}
		for _, q := range s.Quotas {
			head, line = append(head, q.Quota), append(line, fmt.Sprintf("%d (%s)", q.Used, usedPercent(q)))
		}
		if i == 0 {
			cli.Row(w, head...)
		}
		cli.Row(w, line...)
	}
}

// usedPercent is rounded down, but not to 0.
func usedPercent(q wire.Quota) string {
	if q.Limit == 0 {
		return "-"
	}
	p := q.Used * 100 / q.Limit
	if p == 0 && q.Used > 0 {
		p = 1
	}
	return strconv.FormatUint(p, 10) + "%"
}
