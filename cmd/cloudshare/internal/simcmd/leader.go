package simcmd

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/study"
	"github.com/cloudshare/cloudshare/sched"
)

// leading is what `sim leader` was asked for.
type leading struct {
	studyFlags
	seeds    int
	withhold []string
	variants int
	bad      string
}

func simLeaderCommand(a *cli.App) *cobra.Command {
	l := leading{studyFlags: newStudyFlags(1), seeds: 5, withhold: []string{"0", "1s", "10s", "60s"}}
	s := &l.study
	s.Periods, s.Mappings, s.Loads, s.Beyond = 4, 1, []float64{0.75, 1.5}, nil
	s.Policies = []string{sched.Default, sched.FairShare, sched.RoundRobin}
	cmd := &cobra.Command{
		Use: "leader [flags] LOG…", Short: "Measure what a site gains by leading the order for its own good",
		Long: `Measure what a site gains by leading the order for its own good, under each policy:
random days of each log are played with an honest leader, and then with one site that
orders its own proposals first in each entry and withholds the submissions of all
others for each of the times --withhold; beyond 0 also the reports of tasks that ended
at others, and selectively: submissions only while its own tasks wait, ends only while
none does. It leads all the time; live, leaders take turns of an hour.

With --variants it also tries so many variants of each entry on a copy of the state,
each of which leaves what some others propose to a later one, and takes the one that
gives its own tasks most cores, then the one that leaves its machines free, or has them
run others' tasks: that is all that it can do about draws of machines.

Told are the mean wait of its tasks and by how much it is shorter (+) than under an
honest leader, for all seeds and for the least and most favourable one; how much greater
its utility is when all has ended; and how much longer (+) all others' tasks wait.`,
		Example: `  cloudshare sim leader --seeds 2 --periods 2 node/sim/testdata/sample.swf
  cloudshare sim leader --policies SIMPL_DIRECT --withhold 10s HPC2N-2002-2.2-cln.swf.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return measureLeaders(a, cmd, args, l) },
	}
	f := cmd.Flags()
	l.addTo(f)
	f.Uint64Var(&s.Setup.Seed, "seed", s.Setup.Seed, "of every random choice, the first one")
	f.IntVar(&l.seeds, "seeds", l.seeds, "seeds, from --seed on")
	f.StringSliceVar(&l.withhold, "withhold", l.withhold, "for how long the leader withholds, 0 = not at all")
	f.IntVar(&l.variants, "variants", 0, "variants of each entry that the leader tries, 0 = none")
	cli.DurationVar(f, &l.unit, "unit", l.unit, "length of a unit task, 0 = the jobs as they are")
	f.StringSliceVar(&s.Policies, "policies", s.Policies, "policies")
	f.StringVar(&l.bad, "malformed", "malformed.txt", "list the logs' malformed lines, if there are any, in `FILE`")
	return cmd
}

// ways returns what the leader withholds in each run.
func (l *leading) ways() (ways []study.Withheld, err error) {
	for _, text := range l.withhold {
		d, err := jobspec.ParseDuration(text)
		if err != nil {
			return nil, cli.Usage("--withhold: %w", err)
		}
		seconds, err := withheldSeconds(d)
		if err != nil {
			return nil, err
		}
		way := study.Withheld{Seconds: seconds}
		if slices.Contains(ways, way) {
			return nil, cli.Usage("--withhold: %s is listed twice", text)
		}
		if ways = append(ways, way); seconds > 0 {
			for i := 1; i < 4; i++ {
				ways = append(ways, study.Withheld{Seconds: seconds, Ends: i%2 == 1, Selective: i >= 2})
			}
			for i := range l.variantWays() {
				ways = append(ways, study.Withheld{
					Seconds: seconds, Ends: i%2 == 1, Variants: l.variants, Lends: i >= 2,
				})
			}
		}
	}
	if len(ways) == 0 {
		return nil, cli.Usage("--withhold: names no time: name one at least")
	}
	return ways, nil
}

// variantWays returns in how many ways variants are tried.
func (l *leading) variantWays() int {
	if l.variants > 0 {
		return 4
	}
	return 0
}

// withheldSeconds returns what --withhold says.
func withheldSeconds(d time.Duration) (int64, error) {
	if d < 0 || d > sim.MaxWithhold*time.Second || d%time.Second != 0 {
		return 0, cli.Usage("--withhold %s: must be whole seconds, at most the hour for which a site leads", d)
	}
	return int64(d / time.Second), nil
}

func measureLeaders(a *cli.App, cmd *cobra.Command, args []string, l leading) error {
	if err := l.fillStudy(); err != nil {
		return err
	}
	if l.variants < 0 || l.variants > sim.MaxVariants {
		return cli.Usage("--variants %d: must be from 0 to %d", l.variants, sim.MaxVariants)
	}
	ways, err := l.ways()
	if err != nil {
		return err
	}
	if err = checkSeeds(l.seeds); err != nil {
		return err
	}
	if err = apart(args, outFile{"malformed", l.bad}); err != nil {
		return err
	}
	s := &l.study
	if s.Workloads, err = openLogs(cmd.Context(), a, args, l.bad); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return simError(err)
	}
	began := time.Now()
	bar := newInstancesBar(a, s.Size()*l.seeds, began)
	var all []study.Led
	for range l.seeds {
		err := s.Leaders(cmd.Context(), ways, l.workers, func(led []study.Led) {
			bar.played(time.Now())
			all = append(all, led...)
		})
		if err != nil {
			bar.close()
			return simError(err)
		}
		s.Setup.Seed++
	}
	bar.close()
	a.Note("played in %s", time.Since(began).Round(time.Second/10))
	return showLeaders(a, study.LeaderTable(all, s.Policies, ways))
}

// showLeaders prints what leading brings.
func showLeaders(a *cli.App, table []study.LeaderGain) error {
	return a.Show(table, func(w io.Writer) {
		cli.Row(w, "POLICY", "WITHHELD", "FOR", "OWN WAIT", "GAIN", "BY SEED", "UTILITY", "OTHERS' WAIT", "LOSS",
			"UTILITY", "BETTER", "WORSE")
		for i := range table {
			e := &table[i]
			bySeed := signed(e.Least) + " to " + signed(e.Most)
			cli.Row(w, e.Policy, e.Withheld, seconds(e.Seconds), tenths(e.Wait), signed(e.Gain), bySeed,
				hundredths(e.Utility), tenths(e.OthersWait), signed(e.OthersLoss), hundredths(e.OthersUtility),
				e.Better, e.Worse)
		}
	})
}

func tenths(s float64) string          { return fmt.Sprintf("%.1fs", s) }
func signed(s float64) string          { return fmt.Sprintf("%+.1fs", s) }
func hundredths(change float64) string { return fmt.Sprintf("%+.2f%%", 100*change) }
