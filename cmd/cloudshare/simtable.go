package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// table is what `sim table1` was asked for.
type table struct {
	study     sim.Study
	period    time.Duration
	unit      time.Duration
	scenarios []int
	out       string
	workers   int
	open      int // periods for the sensitivity table
	quick     bool
}

func (a *app) simTableCommand() *cobra.Command {
	t := table{study: *sim.DefaultStudy(), period: 24 * time.Hour, unit: time.Hour}
	cmd := &cobra.Command{
		Use: "table1 [flags] LOG…", Short: "Evaluate the policies as the paper does (its Table 1)",
		Long: `Evaluate the policies as the paper does: random days of each log, users spread
over five sites, several loads, three scenarios; in each instance every policy
plays, all coalitions give the Shapley value, and the fairer policy gets a point.
Beside them play the policies that the paper does not know.

Jobs become tasks of one core and --unit length. With --unit 0 they stay as wide and
as long as they are; then all that is said is who is fairer than ` + sched.Default + `, by
several yardsticks.

Results are kept in --out as they come: after Ctrl-C the same command goes on.
The same logs, flags and seed give the same report, table and picture, byte for byte;
rows.jsonl keeps the order in which instances were done. Malformed lines of the
logs are listed in malformed.txt there.`,
		Example: `  cloudshare sim table1 --quick node/sim/testdata/sample.swf
  cloudshare sim table1 --out study HPC2N-2002-2.2-cln.swf.gz LPC-EGEE-2004-1.2-cln.swf.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.simTable(cmd, args, t) },
	}
	f, s := cmd.Flags(), &t.study
	f.StringVar(&t.out, "out", "table1", "`DIR` for the results and the report")
	f.Uint64Var(&s.Setup.Seed, "seed", s.Setup.Seed, "of every random choice")
	f.IntVar(&s.Periods, "periods", s.Periods, "periods of each log")
	f.DurationVar(&t.period, "period", t.period, "length of a period of submissions")
	f.IntVar(&s.Mappings, "mappings", s.Mappings, "mappings of users to sites, of each period")
	f.Float64SliceVar(&s.Loads, "loads", s.Loads, "work of a period over the cores' time in it")
	f.IntSliceVar(&t.scenarios, "scenarios", []int{1, 2, 3}, "1 equal cores, 2 cores by Zipf's law, 3 background load")
	f.DurationVar(&t.unit, "unit", t.unit, "length of a unit task, 0 = the jobs as they are")
	f.StringVar((*string)(&s.Setup.Declare), "declare", "", "timeouts of tasks, which ALONE, CE and SHAPLEY take for lengths: truth, or with --unit 0 what was asked for (asked)")
	f.StringSliceVar(&s.Policies, "policies", s.Policies, "policies to compare")
	f.StringSliceVar(&s.Beyond, "beyond", s.Beyond, "policies that play beside them, without points")
	f.IntVar(&s.Setup.Sites, "sites", s.Setup.Sites, "sites")
	f.Float64Var(&s.Setup.Exponent, "zipf", s.Setup.Exponent, "exponent of Zipf's law, in scenario 2")
	f.Float64Var(&s.Setup.BackgroundShare, "background", s.Setup.BackgroundShare, "probability that a user is background, in scenario 3")
	f.BoolVar(&s.Rules.WholeShare, "whole-share", false, "FAIRSHARE's share is a site's cores, as in the paper, not what it exposes now")
	f.IntVar(&s.Sample, "sample", s.Sample, "let brokers play all coalitions of one in `N` instances, of each scenario at least one; 0 = of none")
	f.IntVar(&t.open, "sensitivity", 15, "periods of each log for the choices that the paper leaves open, 0 = none")
	f.IntVar(&t.workers, "workers", 0, "instances at a time, 0 = as many as there are cores")
	f.BoolVar(&t.quick, "quick", false, "two periods, one mapping, two loads, unless given: a minute, no proof")
	return cmd
}

func (a *app) simTable(cmd *cobra.Command, args []string, t table) error {
	if t.period%time.Second != 0 || t.unit%time.Second != 0 {
		return usage("--period %s, --unit %s: must be whole seconds", t.period, t.unit)
	}
	if t.workers < 0 || t.workers > 4096 || t.open < 0 {
		return usage("--workers %d, --sensitivity %d: must be 0 or more, at most 4096 workers", t.workers, t.open)
	}
	if t.workers == 0 {
		t.workers = runtime.NumCPU()
	}
	s := &t.study
	s.Setup.Period, s.Setup.Unit, s.Scenarios = int64(t.period/time.Second), int64(t.unit/time.Second), nil
	if t.unit == 0 { // the paper's open choices are about unit tasks
		t.open = 0
	}
	for _, n := range t.scenarios {
		s.Scenarios = append(s.Scenarios, sim.Scenario(n))
	}
	t.shorten(cmd.Flags().Changed)
	if err := t.idle(cmd.Flags().Changed); err != nil {
		return err
	}
	logs, err := a.openLogs(cmd.Context(), args, filepath.Join(t.out, "malformed.txt"))
	if err != nil {
		return err
	}
	s.Workloads = logs
	if err := s.Validate(); err != nil {
		return simError(err)
	}
	return a.runTable(cmd.Context(), &t, typed(cmd, args))
}

// shorten makes a quick study: what was given otherwise stays.
func (t *table) shorten(given func(flag string) bool) {
	if !t.quick {
		return
	}
	for flag, set := range map[string]func(){
		"periods":     func() { t.study.Periods = 2 },
		"mappings":    func() { t.study.Mappings = 1 },
		"loads":       func() { t.study.Loads = []float64{0.75, 1.5} },
		"sensitivity": func() { t.open = min(t.open, 1) },
	} {
		if !given(flag) {
			set()
		}
	}
}

// idle refuses flags that would change nothing beside the others.
func (t *table) idle(given func(flag string) bool) error {
	zipf, background := slices.Contains(t.scenarios, int(sim.Zipf)), slices.Contains(t.scenarios, int(sim.Background))
	return idleFlags(given, map[string]string{
		"zipf":        when(!zipf, "but in scenario 2"),
		"background":  when(!background, "but in scenario 3"),
		"sample":      when(t.unit == 0, "with --unit 0, since nothing is counted of jobs as they are"),
		"sensitivity": when(t.unit == 0, "with --unit 0, since other choices are played on unit tasks"),
		"whole-share": when(!background || !slices.Contains(t.study.Policies, sched.FairShare), "but for FAIRSHARE in scenario 3"),
	})
}

// typed is the command line without where files are and what does not matter to
// the result.
func typed(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	for _, name := range []string{
		"seed", "seeds", "tasks", "periods", "period", "mappings", "loads", "scenarios", "liars", "unit", "declare", "policies", "beyond", "sites", "zipf", "background", "whole-share", "sample", "sensitivity", "quick",
	} {
		if f := cmd.Flags().Lookup(name); f != nil && (f.Changed || name == "seed") {
			words = append(words, "--"+name+"="+strings.Trim(f.Value.String(), "[]"))
		}
	}
	for _, path := range args {
		words = append(words, filepath.Base(path))
	}
	return strings.Join(words, " ")
}

func (a *app) runTable(ctx context.Context, t *table, command string) error {
	if err := os.MkdirAll(t.out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	report := &sim.Report{Study: &t.study, Command: command}
	if t.open > 0 {
		report.Variants = t.study.Open(t.open)
	}
	began := time.Now()
	bar := a.studyBar(report, began)
	var err error
	if report.Rows, err = a.runStudy(ctx, t, &t.study, "rows.jsonl", bar); err != nil {
		return err
	}
	for i := range report.Variants {
		v := &report.Variants[i]
		if v.Rows, err = a.runStudy(ctx, t, v.Study, fmt.Sprintf("variant-%02d.jsonl", i), bar); err != nil {
			return err
		}
	}
	bar.close()
	a.note("played in %s", time.Since(began).Round(time.Second/10))
	files := map[string]func(io.Writer) error{"report.md": report.Markdown, "instances.csv": report.CSV}
	if t.unit > 0 {
		files["shares.svg"] = func(w io.Writer) error { return report.Chart(w, sim.SVG) }
		files["shares.png"] = func(w io.Writer) error { return report.Chart(w, sim.PNG) }
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(t.out, name), write); err != nil {
			return err
		}
	}
	a.note("report: %s", filepath.Join(t.out, "report.md"))
	if t.unit == 0 {
		return a.showVerdicts(report)
	}
	return a.showTable(report)
}

// runStudy plays what the results file lacks.
func (a *app) runStudy(ctx context.Context, t *table, s *sim.Study, name string, bar *studyBar) ([]*sim.Row, error) {
	results, err := sim.OpenResults(filepath.Join(t.out, name), s)
	if err != nil {
		return nil, simError(err)
	}
	done := results.Done()
	bar.found(len(done))
	err = s.Run(ctx, t.workers, done, func(r *sim.Row) error {
		bar.played(time.Now())
		return results.Save(r)
	})
	if err = errors.Join(err, results.Close()); err != nil {
		bar.close()
		if ctx.Err() != nil {
			a.note("interrupted: the same command goes on from here")
		}
		return nil, simError(err)
	}
	return results.Rows(), nil
}

// showVerdicts prints who is fairer on jobs as they are.
func (a *app) showVerdicts(report *sim.Report) error {
	verdicts := report.Verdicts()
	return a.show(verdicts, func(w io.Writer) {
		row(w, "YARDSTICK", "SCENARIO", "POLICY", "FAIRER", "LESS FAIR", "THAN", "RATIO (95 %)")
		for _, v := range verdicts {
			row(w, v.Yardstick, int(v.Scenario), v.Policy, v.Wins, v.Losses, v.Than, v.Ratio)
		}
	})
}

// showTable prints the scores.
func (a *app) showTable(report *sim.Report) error {
	scores := report.Scores()
	return a.show(scores, func(w io.Writer) {
		row(w, "SCENARIO", "POLICY", "SCORE", "SHARE", "PAPER", "WINS", "LOSSES", "L1/V", "(L1-FLOOR)/V")
		for _, s := range scores {
			row(w, int(s.Scenario), s.Policy, s.Score, fmt.Sprintf("%.3f", s.Share), fmt.Sprintf("%.3f", s.Paper), s.Score, s.Losses,
				fmt.Sprintf("%.4f", s.Distance), fmt.Sprintf("%.4f", s.Excess))
		}
	})
}
