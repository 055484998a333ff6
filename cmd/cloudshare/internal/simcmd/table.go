package simcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/chart"
	"github.com/cloudshare/cloudshare/node/sim/study"
	"github.com/cloudshare/cloudshare/sched"
)

// table is what `sim table1` was asked for.
type table struct {
	studyFlags
	out   string
	open  int // periods for the sensitivity table
	quick bool
}

func simTableCommand(a *cli.App) *cobra.Command {
	t := table{studyFlags: newStudyFlags(1, 2, 3)}
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
		RunE: func(cmd *cobra.Command, args []string) error { return evaluatePolicies(a, cmd, args, t) },
	}
	f, s := cmd.Flags(), &t.study
	f.StringVar(&t.out, "out", "table1", "`DIR` for the results and the report")
	f.Uint64Var(&s.Setup.Seed, "seed", s.Setup.Seed, "of every random choice")
	t.addTo(f)
	cli.DurationVar(f, &t.unit, "unit", t.unit, "length of a unit task, 0 = the jobs as they are")
	f.StringVar((*string)(&s.Setup.Declare), "declare", "", "timeouts of tasks, which ALONE, CE and SHAPLEY take for lengths: truth, or with --unit 0 what was asked for (asked)")
	f.StringSliceVar(&s.Policies, "policies", s.Policies, "policies to compare")
	f.StringSliceVar(&s.Beyond, "beyond", s.Beyond, "policies that play beside them, without points")
	f.Float64Var(&s.Setup.Exponent, "zipf", s.Setup.Exponent, "exponent of Zipf's law, in scenario 2")
	f.Float64Var(&s.Setup.BackgroundShare, "background", s.Setup.BackgroundShare, "probability that a user is background, in scenario 3")
	f.BoolVar(&s.Rules.WholeShare, "whole-share", false, "FAIRSHARE's share is a site's cores, as in the paper, not what it exposes now")
	f.IntVar(&s.Sample, "sample", s.Sample, "let brokers play all coalitions of one in `N` instances, of each scenario at least one; 0 = of none")
	f.IntVar(&t.open, "sensitivity", 15, "periods of each log for the choices that the paper leaves open, 0 = none")
	f.BoolVar(&t.quick, "quick", false, "two periods, one mapping, two loads, unless given: a minute, no proof")
	return cmd
}

func evaluatePolicies(a *cli.App, cmd *cobra.Command, args []string, t table) error {
	if err := t.fillStudy(); err != nil {
		return err
	}
	if t.open < 0 {
		return cli.Usage("--sensitivity %d: must be 0 or more", t.open)
	}
	if t.unit == 0 { // the paper's open choices are about unit tasks
		t.open = 0
	}
	t.shorten(cmd.Flags().Changed)
	if err := t.idle(cmd.Flags().Changed); err != nil {
		return err
	}
	logs, err := openLogs(cmd.Context(), a, args, filepath.Join(t.out, "malformed.txt"))
	if err != nil {
		return err
	}
	t.study.Workloads = logs
	if err := t.study.Validate(); err != nil {
		return simError(err)
	}
	return runTable(cmd.Context(), a, &t, typed(cmd, args))
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

// idle refuses flags that would change nothing besides the others.
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

// typed returns the command line without where files are and what does not matter to
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

func runTable(ctx context.Context, a *cli.App, t *table, command string) error {
	if err := os.MkdirAll(t.out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	report := &study.Report{Study: &t.study, Command: command}
	if t.open > 0 {
		report.Variants = t.study.Open(t.open)
	}
	began := time.Now()
	bar := newStudyBar(a, report, began)
	var err error
	if report.Rows, err = runStudy(ctx, a, t, &t.study, "rows.jsonl", bar); err != nil {
		return err
	}
	for i := range report.Variants {
		v := &report.Variants[i]
		if v.Rows, err = runStudy(ctx, a, t, v.Study, fmt.Sprintf("variant-%02d.jsonl", i), bar); err != nil {
			return err
		}
	}
	bar.close()
	a.Note("played in %s", time.Since(began).Round(time.Second/10))
	files := map[string]func(io.Writer) error{"report.md": report.Markdown, "instances.csv": report.CSV}
	if t.unit > 0 {
		files["shares.svg"] = func(w io.Writer) error { return report.Chart(w, chart.SVG) }
		files["shares.png"] = func(w io.Writer) error { return report.Chart(w, chart.PNG) }
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(t.out, name), write); err != nil {
			return err
		}
	}
	a.Note("report: %s", filepath.Join(t.out, "report.md"))
	if t.unit == 0 {
		return showVerdicts(a, report)
	}
	return showTable(a, report)
}

// runStudy plays what the results file lacks.
func runStudy(
	ctx context.Context, a *cli.App, t *table, s *study.Study, name string, bar *studyBar,
) ([]*study.Row, error) {
	results, err := study.OpenResults(filepath.Join(t.out, name), s)
	if err != nil {
		return nil, simError(err)
	}
	done := results.Done()
	bar.found(len(done))
	err = s.Run(ctx, t.workers, done, func(r *study.Row) error {
		bar.played(time.Now())
		return results.Save(r)
	})
	if err = errors.Join(err, results.Close()); err != nil {
		bar.close()
		if ctx.Err() != nil {
			a.Note("interrupted: the same command goes on from here")
		}
		return nil, simError(err)
	}
	return results.Rows(), nil
}

// showVerdicts prints who is fairer on jobs as they are.
func showVerdicts(a *cli.App, report *study.Report) error {
	verdicts := report.Verdicts()
	return a.Show(verdicts, func(w io.Writer) {
		cli.Row(w, "YARDSTICK", "SCENARIO", "POLICY", "FAIRER", "LESS FAIR", "THAN", "RATIO (95 %)")
		for _, v := range verdicts {
			cli.Row(w, v.Yardstick, int(v.Scenario), v.Policy, v.Wins, v.Losses, v.Than, v.Ratio)
		}
	})
}

// showTable prints the scores.
func showTable(a *cli.App, report *study.Report) error {
	scores := report.Scores()
	return a.Show(scores, func(w io.Writer) {
		cli.Row(w, "SCENARIO", "POLICY", "SCORE", "SHARE", "PAPER", "WINS", "LOSSES", "L1/V", "(L1-FLOOR)/V")
		for _, s := range scores {
			cli.Row(w, int(s.Scenario), s.Policy, s.Score, fmt.Sprintf("%.3f", s.Share), fmt.Sprintf("%.3f", s.Paper), s.Score,
				s.Losses,
				fmt.Sprintf("%.4f", s.Distance), fmt.Sprintf("%.4f", s.Excess))
		}
	})
}
