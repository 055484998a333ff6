package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/node/sim"
)

// ranges is what `sim ranges` was asked for.
type ranges struct {
	table
	series sim.Series
}

func (a *app) simRangesCommand() *cobra.Command {
	r := ranges{table: table{study: *sim.DefaultStudy(), period: 24 * time.Hour, unit: time.Hour}, series: sim.Series{Seeds: 5}}
	r.study.Periods, r.study.Mappings, r.study.Loads, r.study.Sample = 10, 1, []float64{0.75, 1.5}, 0
	cmd := &cobra.Command{
		Use: "ranges [flags] LOG…", Short: "Tell how much fairer the policies beyond the paper are, over logs and seeds",
		Long: `Tell how much fairer the policies beyond the paper are than the paper's: each log is
played by itself, with each of several seeds, and told are the ratio of all, its
interval over other logs and periods, and the least and greatest of a log and of a seed.

Large logs take long: --tasks gives them fewer periods. Results are kept in --out as
they come: after Ctrl-C the same command goes on.`,
		Example: `  cloudshare sim ranges --seeds 2 --periods 2 node/sim/testdata/sample.swf
  cloudshare sim ranges --tasks 100000 --out ranges KTH-SP2-1996-2.1-cln.swf.gz SDSC-BLUE-2000-4.2-cln.swf.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.simRanges(cmd, args, r) },
	}
	f, s := cmd.Flags(), &r.study
	f.StringVar(&r.out, "out", "ranges", "`DIR` for the results and the report")
	f.IntVar(&r.series.Seeds, "seeds", r.series.Seeds, "seeds of every random choice, from 1 on")
	f.Int64Var(&r.series.Tasks, "tasks", 0, "unit tasks that a log's periods hold together, on average: large logs have fewer periods; 0 = no bound")
	f.IntVar(&s.Periods, "periods", s.Periods, "periods of each log and seed")
	f.DurationVar(&r.period, "period", r.period, "length of a period of submissions")
	f.IntVar(&s.Mappings, "mappings", s.Mappings, "mappings of users to sites, of each period")
	f.Float64SliceVar(&s.Loads, "loads", s.Loads, "work of a period over the cores' time in it")
	f.IntSliceVar(&r.scenarios, "scenarios", []int{1, 2, 3}, "1 equal cores, 2 cores by Zipf's law, 3 background load")
	f.StringSliceVar(&s.Policies, "policies", s.Policies, "policies to compare with")
	f.StringSliceVar(&s.Beyond, "beyond", s.Beyond, "policies that are compared with them")
	f.IntVar(&s.Setup.Sites, "sites", s.Setup.Sites, "sites")
	f.IntVar(&r.workers, "workers", 0, "instances at a time, 0 = as many as there are cores")
	return cmd
}

func (a *app) simRanges(cmd *cobra.Command, args []string, r ranges) error {
	if r.period%time.Second != 0 {
		return usage("--period %s: must be whole seconds", r.period)
	}
	if r.workers < 0 || r.workers > 4096 {
		return usage("--workers %d: must be 0 or more, at most 4096", r.workers)
	}
	if r.workers == 0 {
		r.workers = runtime.NumCPU()
	}
	s := &r.study
	if len(s.Beyond) == 0 {
		return usage("--beyond: names no policy: name one at least")
	}
	s.Setup.Period, s.Scenarios = int64(r.period/time.Second), nil
	for _, n := range r.scenarios {
		s.Scenarios = append(s.Scenarios, sim.Scenario(n))
	}
	logs, err := a.openLogs(cmd.Context(), args, filepath.Join(r.out, "malformed.txt"))
	if err != nil {
		return err
	}
	s.Workloads, r.series.Study = logs, s
	parts, err := r.series.Parts()
	if err != nil {
		return simError(err)
	}
	report := &sim.SeriesReport{Series: &r.series, Parts: parts, Command: typed(cmd, args)}
	return a.runRanges(cmd.Context(), &r.table, report)
}

// runRanges plays what is missing and writes the report.
func (a *app) runRanges(ctx context.Context, t *table, report *sim.SeriesReport) error {
	if err := os.MkdirAll(t.out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	size := 0
	for i := range report.Parts {
		size += report.Parts[i].Study.Size()
	}
	began := time.Now()
	bar := a.instancesBar(size, began)
	for i := range report.Parts {
		p := &report.Parts[i]
		var err error
		if p.Rows, err = a.runStudy(ctx, t, p.Study, p.Name()+".jsonl", bar); err != nil {
			return err
		}
	}
	bar.close()
	a.note("played in %s", time.Since(began).Round(time.Second/10))
	path := filepath.Join(t.out, "ranges.md")
	if err := writeFile(path, report.Markdown); err != nil {
		return err
	}
	a.note("report: %s", path)
	return a.showRanges(report.Versus())
}

// showRanges prints who is how much fairer.
func (a *app) showRanges(all []sim.Versus) error {
	return a.show(all, func(w io.Writer) {
		row(w, "SCENARIO", "POLICY", "THAN", "FAIRER", "LESS FAIR", "RATIO", "95 %", "LOGS", "SEEDS")
		for _, v := range all {
			row(w, int(v.Scenario), v.Policy, v.Than, v.Wins, v.Losses, v.Ratio, v.Interval, v.Logs, v.Seeds)
		}
	})
}
