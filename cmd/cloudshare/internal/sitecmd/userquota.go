package sitecmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node"
)

func userQuotasCommand(a *cli.App) *cobra.Command {
	cmd := cli.ShowCommand(a, "users", "Show what the site's users use of their quotas",
		"  cloudshare quota users\n  cloudshare quota users -o json",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.UserQuota], error) {
			return c.UserQuotas(cmd.Context())
		},
		func(w io.Writer, l wire.List[wire.UserQuota]) { showUserQuotas(w, l.Items) })
	cmd.Long = `Show what the site's users use of their quotas: all to the operator, to a user
the own. They count jobs that have not ended; a job beyond one is refused (exit
code 5). HELD are the tasks that wait at the site for their user's turn: who has
used least in relation to its shares is next. CORE-HOURS is what the user's
tasks have run, of which half is forgotten each week (user_half_life of the
broker's configuration). The line * has the limits of users that have none of
their own. LIMITS says where they are from: own (set
by command), file (the broker's configuration), of * (those of everybody), or
none.`
	return cmd
}

func setUserQuotaCommand(a *cli.App) *cobra.Command {
	var (
		tasks, milliCPU, bytes, jobs, shares uint64

		clearOwn bool
		user     string
	)
	cmd := cli.ShowCommand(a, "set USER", "Change the quotas of a user of the site",
		"  cloudshare quota set alice --tasks 1000\n  cloudshare quota set '*' --tasks 5000 --milli-cpu 64000\n"+
			"  cloudshare quota set alice --shares 3\n  cloudshare quota set alice --clear",
		func(cmd *cobra.Command, c *client.Client) (wire.UserQuota, error) {
			in := wire.UserLimitsRequest{Clear: clearOwn}
			for name, f := range map[string]struct {
				to    **uint64
				value *uint64
			}{
				"tasks": {&in.Tasks, &tasks}, "milli-cpu": {&in.MilliCPU, &milliCPU}, "bytes": {&in.Bytes, &bytes},
				"jobs-per-minute": {&in.JobsPerMinute, &jobs}, "shares": {&in.Shares, &shares},
			} {
				if cmd.Flags().Changed(name) {
					*f.to = f.value
				}
			}
			if in == (wire.UserLimitsRequest{}) {
				return wire.UserQuota{}, cli.Usage("nothing to set; see cloudshare quota set --help")
			}
			q, err := c.SetUserQuotas(cmd.Context(), user, in)
			if q.Note != "" {
				a.Note("%s", cli.Cell(q.Note))
			}
			return q, err
		},
		func(w io.Writer, q wire.UserQuota) { showUserQuotas(w, []wire.UserQuota{q}) })
	cmd.Long = `Change the quotas of a user of the site, or of '*': all users that have none of
their own. What is not named stays; 0 is without limit. They hold at once, for
jobs that come from now on, and are kept by the broker over restarts, instead of
what its configuration (quotas) says, until they are cleared. The operator may.
A name of which the site has no token, quota or job yet is taken with a warning.`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(1)(cmd, args); err != nil {
			return err
		}
		user = args[0]
		return nil
	}
	f := cmd.Flags()
	f.Uint64Var(&tasks, "tasks", 0, "tasks that have not ended")
	f.Uint64Var(&milliCPU, "milli-cpu", 0, "thousandths of cores that these may need")
	f.Uint64Var(&bytes, "bytes", 0, "bytes of jobs that have not ended: commands, environments and lists")
	f.Uint64Var(&jobs, "jobs-per-minute", 0, "jobs that are taken in a minute; all may come at once")
	f.Uint64Var(&shares, "shares", 0, "of the site's turns, in relation to other users; 0 is 1")
	f.BoolVar(&clearOwn, "clear", false,
		"forget the user's own limits first: those of the configuration, or of '*', hold again")
	return cmd
}

func showUserQuotas(w io.Writer, list []wire.UserQuota) {
	cli.Row(w, "USER", "LIMITS", "SHARES", "TASKS", "HELD", "MILLI-CPU", "BYTES", "JOBS/MIN", "CORE-HOURS")
	for _, q := range list {
		cli.Row(w, q.User, origin(q), max(q.Limits.Shares, 1), used(q.Tasks, q.Limits.Tasks), q.Held,
			used(q.MilliCPU, q.Limits.MilliCPU),
			used(q.Bytes, q.Limits.Bytes), rateOf(q.Limits), fmt.Sprintf("%.2f", float64(q.CoreSeconds)/3600))
	}
}

// origin words where limits are from.
func origin(q wire.UserQuota) string {
	switch {
	case q.From == node.LimitsByConfiguration:
		return "file"
	case q.From == node.LimitsOfNobody:
		return "none"
	case q.Own || q.User == node.EveryUser:
		return "own"
	}
	return "of *"
}

// rateOf words the limit of a rate.
func rateOf(l wire.UserLimits) string {
	if l.JobsPerMinute == 0 {
		return "any"
	}
	return fmt.Sprint(l.JobsPerMinute)
}

// used words what is used of a limit.
func used(n, limit uint64) string {
	if limit == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %d", n, limit)
}
