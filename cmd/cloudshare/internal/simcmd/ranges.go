package simcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim/study"
)

// ranges is what `sim ranges` was asked for.
type ranges struct {
	table
	series study.Series
}

func simRangesCommand(a *cli.App) *cobra.Command {
	r := ranges{table: table{studyFlags: newStudyFlags(1, 2, 3)}, series: study.Series{Seeds: 5}}
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
		RunE: func(cmd *cobra.Command, args []string) error { return evaluateRanges(a, cmd, args, r) },
	}
	f, s := cmd.Flags(), &r.study
	f.StringVar(&r.out, "out", "ranges", "`DIR` for the results and the report")
	f.IntVar(&r.series.Seeds, "seeds", r.series.Seeds, "seeds of every random choice, from 1 on")
	f.Int64Var(&r.series.Tasks, "tasks", 0, "unit tasks that a log's periods hold together, on average: large logs have fewer periods; 0 = no bound")
	r.addTo(f)
	f.Lookup("periods").Usage = "periods of each log and seed"
	f.StringSliceVar(&s.Policies, "policies", s.Policies, "policies to compare with")
	f.StringSliceVar(&s.Beyond, "beyond", s.Beyond, "policies that are compared with them")
	return cmd
}

func evaluateRanges(a *cli.App, cmd *cobra.Command, args []string, r ranges) error {
	if err := r.fillStudy(); err != nil {
		return err
	}
	s := &r.study
	if len(s.Beyond) == 0 {
		return cli.Usage("--beyond: names no policy: name one at least")
	}
	logs, err := openLogs(cmd.Context(), a, args, filepath.Join(r.out, "malformed.txt"))
	if err != nil {
		return err
	}
	s.Workloads, r.series.Study = logs, s
	parts, err := r.series.Parts()
	if err != nil {
		return simError(err)
	}
	report := &study.SeriesReport{Series: &r.series, Parts: parts, Command: typed(cmd, args)}
	return runRanges(cmd.Context(), a, &r.table, report)
}

// runRanges plays what is missing and writes the report.
func runRanges(ctx context.Context, a *cli.App, t *table, report *study.SeriesReport) error {
	if err := os.MkdirAll(t.out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	size := 0
	for i := range report.Parts {
		size += report.Parts[i].Study.Size()
	}
	began := time.Now()
	bar := newInstancesBar(a, size, began)
	for i := range report.Parts {
		p := &report.Parts[i]
		var err error
		if p.Rows, err = runStudy(ctx, a, t, p.Study, p.Name()+".jsonl", bar); err != nil {
			return err
		}
	}
	bar.close()
	a.Note("played in %s", time.Since(began).Round(time.Second/10))
	path := filepath.Join(t.out, "ranges.md")
	if err := writeFile(path, report.Markdown); err != nil {
		return err
	}
	a.Note("report: %s", path)
	return showRanges(a, report.Versus())
}

// showRanges prints who is how much fairer.
func showRanges(a *cli.App, all []study.Versus) error {
	return a.Show(all, func(w io.Writer) {
		cli.Row(w, "SCENARIO", "POLICY", "THAN", "FAIRER", "LESS FAIR", "RATIO", "95 %", "LOGS", "SEEDS")
		for _, v := range all {
			cli.Row(w, int(v.Scenario), v.Policy, v.Than, v.Wins, v.Losses, v.Ratio, v.Interval, v.Logs, v.Seeds)
		}
	})
}
