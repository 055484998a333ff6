package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/node/sim"
)

// lies is what `sim incentives` was asked for.
type lies struct {
	study     sim.Study
	period    time.Duration
	unit      time.Duration
	scenarios []int
	liars     int
	out       string
	bad       string
	workers   int
}

func (a *app) simIncentivesCommand() *cobra.Command {
	l := lies{study: *sim.DefaultStudy(), period: 24 * time.Hour, unit: time.Hour}
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.simIncentives(cmd, args, l) },
	}
	f := cmd.Flags()
	f.StringVar(&l.out, "out", "", "write the report to `FILE`, Markdown")
	f.Uint64Var(&s.Setup.Seed, "seed", s.Setup.Seed, "of every random choice")
	f.IntVar(&s.Periods, "periods", s.Periods, "periods of each log")
	f.DurationVar(&l.period, "period", l.period, "length of a period of submissions")
	f.IntVar(&s.Mappings, "mappings", s.Mappings, "mappings of users to sites, of each period")
	f.Float64SliceVar(&s.Loads, "loads", s.Loads, "work of a period over the cores' time in it")
	f.IntSliceVar(&l.scenarios, "scenarios", []int{1}, "1 equal cores, 2 cores by Zipf's law, 3 background load")
	f.IntVar(&l.liars, "liars", 1, "sites that lie, all alike")
	f.DurationVar(&l.unit, "unit", l.unit, "length of a unit task, 0 = the jobs as they are")
	f.StringSliceVar(&s.Policies, "policies", append(s.Policies, s.Beyond...), "policies")
	f.IntVar(&s.Setup.Sites, "sites", s.Setup.Sites, "sites")
	f.StringVar(&l.bad, "malformed", "malformed.txt", "list the logs' malformed lines, if there are any, in `FILE`")
	f.IntVar(&l.workers, "workers", 0, "instances at a time, 0 = as many as there are cores")
	s.Beyond = nil
	return cmd
}

func (a *app) simIncentives(cmd *cobra.Command, args []string, l lies) error {
	if l.period%time.Second != 0 || l.unit%time.Second != 0 {
		return usage("--period %s, --unit %s: must be whole seconds", l.period, l.unit)
	}
	if l.workers < 0 || l.workers > 4096 {
		return usage("--workers %d: must be 0 or more, at most 4096", l.workers)
	}
	if err := apart(args, outFile{"malformed", l.bad}, outFile{"out", l.out}); err != nil {
		return err
	}
	if l.workers == 0 {
		l.workers = runtime.NumCPU()
	}
	s := &l.study
	s.Setup.Period, s.Setup.Unit, s.Scenarios = int64(l.period/time.Second), int64(l.unit/time.Second), nil
	for _, n := range l.scenarios {
		s.Scenarios = append(s.Scenarios, sim.Scenario(n))
	}
	logs, err := a.openLogs(cmd.Context(), args, l.bad)
	if err != nil {
		return err
	}
	s.Workloads = logs
	report := &sim.IncentiveReport{Study: s, Liars: l.liars, Command: typed(cmd, args)}
	if err = s.Validate(); err != nil {
		return simError(err)
	}
	began := time.Now()
	bar := a.studyBar(&sim.Report{Study: s}, began)
	err = s.Incentives(cmd.Context(), l.liars, l.workers, func(g []sim.Gain) {
		bar.played(time.Now())
		report.Gains = append(report.Gains, g...)
	})
	bar.close()
	if err != nil {
		return simError(err)
	}
	a.note("played in %s", time.Since(began).Round(time.Second/10))
	if l.out != "" {
		if err := writeFile(l.out, report.Markdown); err != nil {
			return err
		}
	}
	return a.showLies(report)
}

// showLies prints what each lie brings under each policy.
func (a *app) showLies(report *sim.IncentiveReport) error {
	table := report.Table()
	return a.show(table, func(w io.Writer) {
		row(w, "LIE", "POLICY", "OWN WAIT", "OTHERS'", "BETTER", "WORSE")
		for i := range table {
			e := &table[i]
			row(w, e.Lie, e.Policy, percent(e.Own), percent(e.Others), e.Better, e.Worse)
		}
	})
}

// percent words a change.
func percent(change float64) string { return fmt.Sprintf("%+.1f%%", 100*change) }
