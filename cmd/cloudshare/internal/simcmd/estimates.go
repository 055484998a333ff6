package simcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/study"
	"github.com/cloudshare/cloudshare/sched"
)

// forecasts is what `sim estimates` was asked for.
type forecasts struct {
	studyFlags
	seeds int
	bad   string
}

func simEstimatesCommand(a *cli.App) *cobra.Command {
	e := forecasts{studyFlags: newStudyFlags(1), seeds: 1}
	s := &e.study
	s.Periods, s.Mappings, s.Loads, s.Policies, s.Beyond = 1, 1, []float64{0.75, 1.5}, []string{sched.Default}, nil
	e.period, e.unit = 7*24*time.Hour, 0
	cmd := &cobra.Command{
		Use: "estimates [flags] LOG…", Short: "Judge the estimates of when jobs start (cloudshare why)",
		Long: `Judge the estimates of when jobs start, as cloudshare why tells them: a broker's own
estimator learns from random weeks of each log, is asked about each job that waits when
it was submitted, and each hour about up to twenty of those that wait, and its answers
are compared with the starts. It begins each week knowing nothing.

Jobs stay as wide and as long as they are; with --unit they become tasks of one core and
that length. Parameters are those of a new federation.`,
		Example: `  cloudshare sim estimates --period 48h node/sim/testdata/sample.swf
  cloudshare sim estimates --seed 11 --seeds 2 HPC2N-2002-2.2-cln.swf.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return judgeEstimates(a, cmd, args, e) },
	}
	f := cmd.Flags()
	e.addTo(f)
	f.Uint64Var(&s.Setup.Seed, "seed", s.Setup.Seed, "of every random choice, the first one")
	f.IntVar(&e.seeds, "seeds", e.seeds, "seeds, from --seed on")
	cli.DurationVar(f, &e.unit, "unit", e.unit, "length of a unit task, 0 = the jobs as they are")
	f.StringSliceVar(&s.Policies, "policies", s.Policies, "policies")
	f.StringVar(&e.bad, "malformed", "malformed.txt", "list the logs' malformed lines, if there are any, in `FILE`")
	return cmd
}

func judgeEstimates(a *cli.App, cmd *cobra.Command, args []string, e forecasts) error {
	if err := e.fillStudy(); err != nil {
		return err
	}
	if err := checkSeeds(e.seeds); err != nil {
		return err
	}
	if err := apart(args, outFile{"malformed", e.bad}); err != nil {
		return err
	}
	s := &e.study
	var err error
	if s.Workloads, err = openLogs(cmd.Context(), a, args, e.bad); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return simError(err)
	}
	began := time.Now()
	bar := newInstancesBar(a, s.Size()*e.seeds, began)
	var runs []study.EstimateRun
	for range e.seeds {
		err := s.Estimates(cmd.Context(), e.workers, func(r []study.EstimateRun) {
			bar.played(time.Now())
			runs = append(runs, r...)
		})
		if err != nil {
			bar.close()
			return simError(err)
		}
		s.Setup.Seed++
	}
	bar.close()
	a.Note("played in %s", time.Since(began).Round(time.Second/10))
	return showEstimates(a, runs)
}

// estimateRow is one line of what is told: a log's, seed's and load's, all periods
// together, or, with seed 0, all there are.
type estimateRow struct {
	Log      string  `json:"log"`
	Seed     uint64  `json:"seed"`
	Scenario int     `json:"scenario"`
	Load     float64 `json:"load"`
	Policy   string  `json:"policy"`
	At       string  `json:"asked_at"`
	Asked    int     `json:"asked"`
	Told     int     `json:"told"`
	P50      float64 `json:"p50_held"`
	P90      float64 `json:"p90_held"`
	Wait     float64 `json:"median_wait_seconds"`
	Bound    float64 `json:"median_p90_seconds"`
}

// estimateRows sums up the runs, and all of each policy and moment.
func estimateRows(runs []study.EstimateRun) (rows []estimateRow) {
	slices.SortFunc(runs, func(x, y study.EstimateRun) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Policy, y.Policy), cmp.Compare(x.Log, y.Log),
			cmp.Compare(x.Scenario, y.Scenario),
			cmp.Compare(x.Load, y.Load), cmp.Compare(x.Seed, y.Seed), cmp.Compare(x.Index, y.Index))
	})
	var sums []*sim.Answers
	var last, all *estimateRow
	var sum, total *sim.Answers
	add := func(row estimateRow) (*estimateRow, *sim.Answers) {
		rows, sums = append(rows, row), append(sums, &sim.Answers{})
		return &row, sums[len(sums)-1]
	}
	for i := range runs {
		r := &runs[i]
		row := estimateRow{
			Log: r.Log, Seed: r.Seed, Scenario: int(r.Scenario), Load: r.Load, Policy: r.Policy,
			At: r.At.String(),
		}
		if together := (estimateRow{Log: "all", Policy: r.Policy, At: row.At}); all == nil || *all != together {
			all, total = add(together)
		}
		if last == nil || *last != row {
			last, sum = add(row)
		}
		sum.Plus(&r.Answers)
		total.Plus(&r.Answers)
	}
	for i := range rows {
		rows[i].fill(sums[i])
	}
	return rows
}

// fill enters what the answers came to.
func (r *estimateRow) fill(a *sim.Answers) {
	r.Asked, r.Told = a.Asked, a.Told
	if a.Told > 0 {
		r.P50, r.P90 = float64(a.WithinP50)/float64(a.Told), float64(a.WithinP90)/float64(a.Told)
	}
	wait, bound := a.Medians()
	r.Wait, r.Bound = wait.Seconds(), bound.Seconds()
}

// showEstimates prints how the estimates came out.
func showEstimates(a *cli.App, runs []study.EstimateRun) error {
	rows := estimateRows(runs)
	return a.Show(rows, func(w io.Writer) {
		cli.Row(w, "ASKED AT", "POLICY", "LOG", "SCENARIO", "LOAD", "SEED", "ASKED", "TOLD", "WITHIN P50", "WITHIN P90", "MEDIAN WAIT", "MEDIAN P90")
		for i := range rows {
			r := &rows[i]
			held := []any{"-", "-", "-", "-"}
			if r.Told > 0 {
				held = []any{
					fmt.Sprintf("%.2f", r.P50), fmt.Sprintf("%.2f", r.P90), seconds(int64(r.Wait)),
					seconds(int64(r.Bound)),
				}
			}
			where := []any{r.At, r.Policy, r.Log, r.Scenario, r.Load, r.Seed}
			if r.Seed == 0 {
				where = []any{r.At, r.Policy, r.Log, "-", "-", "-"}
			}
			cli.Row(w, append(append(where, r.Asked, r.Told), held...)...)
		}
	})
}
