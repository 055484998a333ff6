package simcmd

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim/study"
)

// lies is what `sim incentives` was asked for.
type lies struct {
	studyFlags
	liars int
	out   string
	bad   string
}

func simIncentivesCommand(a *cli.App) *cobra.Command {
	l := lies{studyFlags: newStudyFlags(1)}
	s := &l.study
	s.Periods, s.Mappings, s.Loads = 10, 1, []float64{0.75, 1.5}
	cmd := &cobra.Command{
		Use: "incentives [flags] LOG…", Short: "Measure what a site gains by lying, under each policy",
		Long: `Measure what a site gains by lying, under each policy: random days of each log are
played honestly, and then with --liars sites that declare wrong timeouts, split their
tasks, report ends late, withdraw idle cores, claim to use more than they have, hold
jobs back, join late or leave and return. Told is by how much their tasks, and all
others', wait longer or shorter.`,
		Example: `  cloudshare sim incentives --periods 2 node/sim/testdata/sample.swf
  cloudshare sim incentives --out lies.md HPC2N-2002-2.2-cln.swf.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return measureIncentives(a, cmd, args, l) },
	}
	f := cmd.Flags()
	f.StringVar(&l.out, "out", "", "write the report to `FILE`, Markdown")
	f.Uint64Var(&s.Setup.Seed, "seed", s.Setup.Seed, "of every random choice")
	l.addTo(f)
	f.IntVar(&l.liars, "liars", 1, "sites that lie, all alike")
	cli.DurationVar(f, &l.unit, "unit", l.unit, "length of a unit task, 0 = the jobs as they are")
	f.StringSliceVar(&s.Policies, "policies", append(s.Policies, s.Beyond...), "policies")
	f.StringVar(&l.bad, "malformed", "malformed.txt", "list the logs' malformed lines, if there are any, in `FILE`")
	s.Beyond = nil
	return cmd
}

func measureIncentives(a *cli.App, cmd *cobra.Command, args []string, l lies) error {
	if err := l.fillStudy(); err != nil {
		return err
	}
	if err := apart(args, outFile{"malformed", l.bad}, outFile{"out", l.out}); err != nil {
		return err
	}
	logs, err := openLogs(cmd.Context(), a, args, l.bad)
	if err != nil {
		return err
	}
	s := &l.study
	s.Workloads = logs
	report := &study.IncentiveReport{Study: s, Liars: l.liars, Command: typed(cmd, args)}
	if err = s.Validate(); err != nil {
		return simError(err)
	}
	began := time.Now()
	bar := newStudyBar(a, &study.Report{Study: s}, began)
	err = s.Incentives(cmd.Context(), l.liars, l.workers, func(g []study.Gain) {
		bar.played(time.Now())
		report.Gains = append(report.Gains, g...)
	})
	bar.close()
	if err != nil {
		return simError(err)
	}
	a.Note("played in %s", time.Since(began).Round(time.Second/10))
	if l.out != "" {
		if err := writeFile(l.out, report.Markdown); err != nil {
			return err
		}
	}
	return showLies(a, report)
}

// showLies prints what each lie brings under each policy.
func showLies(a *cli.App, report *study.IncentiveReport) error {
	table := report.Table()
	return a.Show(table, func(w io.Writer) {
		cli.Row(w, "LIE", "POLICY", "OWN WAIT", "OTHERS'", "BETTER", "WORSE")
		for i := range table {
			e := &table[i]
			cli.Row(w, e.Lie, e.Policy, percent(e.Own), percent(e.Others), e.Better, e.Worse)
		}
	})
}

// percent words a change.
func percent(change float64) string { return fmt.Sprintf("%+.1f%%", 100*change) }
