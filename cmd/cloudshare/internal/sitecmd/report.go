package sitecmd

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// archiveFlags select a part of an archive.
func archiveFlags(f *pflag.FlagSet, q *client.ArchiveQuery) {
	f.StringVar(&q.Since, "since", "", "ended at or after this `DATE`, moment or how long ago: 2026-01-31, 7d, 36h")
	f.StringVar(&q.Until, "until", "", "ended before this `DATE`, alike")
	f.StringVar(&q.Site, "site", "", "only with this owner or executor")
	f.StringVar(&q.Label, "label", "", "only of jobs with this `KEY=VALUE`")
}

func reportCommand(a *cli.App) *cobra.Command {
	var q client.ArchiveQuery
	var by string
	cmd := &cobra.Command{
		Use: "report", Short: "Sum up core-hours lent and used, tasks and waits", Args: cobra.NoArgs,
		Long: `Sum up core-hours lent and used, tasks and waits, from the broker's archive.

The archive holds what the broker's site owned or ran, so rows of other sites
show their dealings with it only; with archive.scope all it holds everything. It
reaches back as far as archive.keep and archive.max_bytes allow. OWN are a site's
own tasks on its own machines, LENT other sites' tasks on its machines, USED its
tasks on other sites' machines. An attempt counts whole where it ended.

The second table is what the attempts have used, of its own tasks and of those
that it ran for others, as the sites measured it that ran them: hours of
processors, and their part of the cores and hours that were held; the memory of
the one that used most, and the part of what was asked for that they used at
most, in the mean; bytes of files that they were given, and have left.

--by user tells the users of this site apart; their names are known to no other
broker. A user sees the own row alone, the operator all. (none) are the site's
own jobs, which no user submitted, and other sites', which ran here.

-o csv writes a line for each row, for a spreadsheet.`,
		Example: `  cloudshare report --since 30d
  cloudshare report --by label:team --since 2026-01-01 --until 2026-02-01 -o csv
  cloudshare report --by user --since 7d
  cloudshare report --by day --site site-2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !strings.HasPrefix(by, "label:") && !slices.Contains([]string{"site", "user", "hour", "day", "month"}, by) {
				return cli.Usage("--by %q: must be site, user, hour, day, month or label:KEY", by)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			r, err := c.Report(cmd.Context(), q, by)
			if err != nil {
				return err
			}
			for _, g := range r.Gaps {
				a.Note("incomplete: entries after %d up to %d are not in the archive (%s)", g.FromEntry, g.ToEntry, g.Reason)
			}
			if a.Format == "csv" {
				return writeReportCSV(a.Out, &r)
			}
			return a.Show(r, func(w io.Writer) { showReport(w, &r) })
		},
	}
	cmd.Annotations = map[string]string{cli.FormatsKey: "csv"}
	cmd.Flags().StringVar(&by, "by", "site", "site, user, hour, day, month or label:KEY")
	archiveFlags(cmd.Flags(), &q)
	return cmd
}

func showReport(w io.Writer, r *wire.Report) {
	heading, label, ok := strings.Cut(r.By, ":")
	if ok {
		heading = label
	}
	cli.Row(w, strings.ToUpper(heading), "OWN", "LENT", "USED", "TASKS", "SUCCEEDED", "FAILED", "CANCELLED", "LOST", "WAIT MEAN", "P50", "P95")
	for i := range r.Rows {
		reportRow(w, &r.Rows[i])
	}
	reportRow(w, &r.Total)
	fmt.Fprintln(w)
	cli.Row(w, strings.ToUpper(heading), "CPU HOURS", "OF CORES", "PEAK MEMORY", "OF ASKED", "FILES IN", "FILES OUT")
	for i := range r.Rows {
		usageRow(w, &r.Rows[i])
	}
	usageRow(w, &r.Total)
	ends := "of nothing"
	if r.First != nil && r.Last != nil {
		ends = "from " + cli.Cell(r.First) + " to " + cli.Cell(r.Last)
	}
	fmt.Fprintf(w, "\ncore-hours and seconds, seen by %s, archive.scope %s, ends %s\n", r.Site, r.Scope, ends)
	if r.By == "site" { // no column adds up to it
		fmt.Fprintf(w, "the total is %s's: what others lent it counts as used\n", r.Site)
	}
}

func reportRow(w io.Writer, x *wire.ReportRow) {
	cli.Row(w, x.Key, hours(x.Own), hours(x.Lent), hours(x.Used), x.Tasks, x.Succeeded, x.Failed, x.Cancelled, x.Lost,
		waited(x.Wait.Mean), waited(x.Wait.P50), waited(x.Wait.P95))
}

// usageRow shows what a row's attempts have used of what they took.
func usageRow(w io.Writer, x *wire.ReportRow) {
	u, peak := &x.Usage, ""
	if u.PeakBytes != nil {
		peak = cli.Bytes(*u.PeakBytes)
	}
	cpu := ""
	if u.Efficiency != nil {
		cpu = hours(u.CPUHours)
	}
	cli.Row(w, x.Key, cpu, percent(u.Efficiency), peak, percent(u.Memory), cli.Bytes(u.InBytes), cli.Bytes(u.OutBytes))
}

// percent writes a share, "" if it is not known.
func percent(share *float64) string {
	if share == nil {
		return ""
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + " %"
}

// hours has three digits that say something.
func hours(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func waited(s *float64) string {
	if s == nil {
		return ""
	}
	return strconv.FormatFloat(*s, 'f', 1, 64)
}

func writeReportCSV(out io.Writer, r *wire.Report) error {
	w := csv.NewWriter(out)
	lines := [][]string{{
		"key", "own_core_hours", "lent_core_hours", "used_core_hours", "others_core_hours", "attempts", "tasks", "succeeded", "failed", "cancelled", "lost",
		"waits", "wait_mean_seconds", "wait_p50_seconds", "wait_p95_seconds",
		"cpu_hours", "cpu_efficiency", "peak_memory_bytes", "memory_efficiency", "in_bytes", "out_bytes",
	}}
	for _, x := range append(r.Rows, r.Total) {
		line := []string{noFormula(x.Key)}
		for _, v := range []float64{x.Own, x.Lent, x.Used, x.Others} {
			line = append(line, strconv.FormatFloat(v, 'f', 6, 64))
		}
		for _, n := range []uint64{x.Attempts, x.Tasks, x.Succeeded, x.Failed, x.Cancelled, x.Lost, x.Wait.Count} {
			line = append(line, strconv.FormatUint(n, 10))
		}
		for _, s := range []*float64{x.Wait.Mean, x.Wait.P50, x.Wait.P95} {
			text := ""
			if s != nil {
				text = strconv.FormatFloat(*s, 'f', 3, 64)
			}
			line = append(line, text)
		}
		line = append(line, usageCells(&x.Usage)...)
		lines = append(lines, line)
	}
	if err := w.WriteAll(lines); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

// usageCells are the columns of what was used; what is not known is empty.
func usageCells(u *wire.ReportUsage) []string {
	share := func(s *float64) string {
		if s == nil {
			return ""
		}
		return strconv.FormatFloat(*s, 'f', 4, 64)
	}
	cpu, peak := "", ""
	if u.Efficiency != nil {
		cpu = strconv.FormatFloat(u.CPUHours, 'f', 6, 64)
	}
	if u.PeakBytes != nil {
		peak = strconv.FormatInt(*u.PeakBytes, 10)
	}
	return []string{
		cpu, share(u.Efficiency), peak, share(u.Memory), strconv.FormatInt(u.InBytes, 10),
		strconv.FormatInt(u.OutBytes, 10),
	}
}

// noFormula keeps a spreadsheet from taking a label for a formula.
func noFormula(s string) string {
	if s != "" {
		switch s[0] {
		case '=', '+', '-', '@', '\t', '\r':
			return "'" + s
		}
	}
	return s
}
