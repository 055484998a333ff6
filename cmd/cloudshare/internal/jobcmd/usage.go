package jobcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/fsm/command"
)

func usageCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "usage ID", Short: "Tell what a job has used of what it took", Args: oneJob,
		Long: `Tell what a job's ended attempts have used of what they took: processor time beside cores and time, the greatest memory
beside what a task may use, and how many bytes of files they were given and have left. The sites that ran them have
measured it: cgroup is of all that an attempt was; rusage of the processes that somebody waited for, and of memory the
largest one, at least the 30 MiB of what starts a task; unknown is of attempts that were lost, and of tasks in Kubernetes
without a watchdog, as a Kubernetes site's own tasks are that have no files. What is low can be asked for less next time;
what is near its bound, for more.

It is the broker's archive that tells: of this site's jobs all attempts, of others' those that ran here. An attempt at
another site is there a moment after its end.`,
		Example: `  cloudshare usage site-1.42
  cloudshare usage site-1.42 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			u, err := c.JobUsage(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if u.Attempts == 0 {
				defer a.Note("no attempt of %s has run and ended yet, as far as this broker's archive goes", u.ID)
			}
			return a.Show(u, func(w io.Writer) { showUsage(w, &u) })
		},
	}
}

func showUsage(w io.Writer, u *wire.JobUsage) {
	cli.Row(w, "job", strings.TrimSpace(u.ID+" "+u.Name))
	cli.Row(w, "ended", fmt.Sprintf("%s, %s", cli.Plural(int64(u.Tasks), "task"), cli.Plural(int64(u.Attempts), "attempt")))
	cli.Row(w, "charged", fmt.Sprintf("%.4g core-hours", u.CoreHours))
	cli.Row(w, "processor", processorText(u))
	cli.Row(w, "memory", memoryText(u))
	cli.Row(w, "files", fmt.Sprintf("%s in, %s out", cli.Bytes(u.InBytes), cli.Bytes(u.OutBytes)))
	cli.Row(w, "measured by", measuredText(u.MeasuredBy))
	for _, g := range u.Gaps {
		cli.Row(w, "missing", g.Reason)
	}
}

func processorText(u *wire.JobUsage) string {
	if u.Efficiency == nil {
		return "not known"
	}
	return fmt.Sprintf("%.3g %% of its cores: %s, %s of it in the kernel", 100**u.Efficiency, hoursText(u.CPUHours),
		hoursText(u.CPUHours-u.UserHours))
}

// hoursText writes hours as a duration.
func hoursText(hours float64) string {
	d := time.Duration(hours * float64(time.Hour))
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

func memoryText(u *wire.JobUsage) string {
	if u.PeakBytes == nil {
		return "not known"
	}
	text := mebibytes(*u.PeakBytes) + " at most"
	if u.PeakEfficiency != nil {
		text += fmt.Sprintf(", %.3g %% of the %d MiB that a task may use", 100**u.PeakEfficiency, u.MemoryMiB)
	}
	if u.MeanPeakBytes != nil && u.Attempts > 1 {
		text += ", " + mebibytes(*u.MeanPeakBytes) + " in the mean"
	}
	return text
}

// unmeasured is the source of what nobody has measured.
var unmeasured = command.MeasuredUnknown.String()

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

func measuredText(by map[string]uint64) string {
	var parts []string
	for _, source := range slices.Sorted(maps.Keys(by)) {
		part := fmt.Sprintf("%s: %d", source, by[source])
		if source == unmeasured {
			part += " (" + command.UnmeasuredWhy + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
