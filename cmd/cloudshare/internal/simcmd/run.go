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
	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/chart"
	"github.com/cloudshare/cloudshare/sched"
)

// simRun is what `sim run` was asked for.
type simRun struct {
	setup    sim.Setup
	scenario int
	period   time.Duration
	unit     time.Duration
	reserve  time.Duration
	from     int64
	mapping  int
	policy   string
	running  string
	home     string
	starts   string
	schedule string
	gantt    string
	bad      string
	leader   string
	withhold time.Duration
	ends     bool
	choosy   bool
}

func simRunCommand(a *cli.App) *cobra.Command {
	r := simRun{setup: sim.DefaultSetup()}
	s := &r.setup
	cmd := &cobra.Command{
		Use: "run [flags] LOG…", Short: "Play one period of a workload",
		Long: `Play one period of a workload, and print what each site's tasks waited.

Jobs become tasks of one core and --unit length; with --unit 0 they stay as wide
and as long as they are, and those wider than every site are left out and counted.
Several logs are played together: their first submissions coincide, and their
users are different people.

With --hostile-leader that site orders all entries: its own proposals first, and the
submissions of all others --withhold later (--withhold-ends: the reports of tasks that
ended there, too). Sites are called site-01, site-02 and so on.`,
		Example: `  cloudshare sim run --load 1.5 --gantt run.svg node/sim/testdata/sample.swf
  cloudshare sim run --load 1.5 --hostile-leader site-02 --withhold 10s node/sim/testdata/sample.swf
  cloudshare sim run --unit 0 --period 0 --sites 1 --cores 100 KTH-SP2-1996-2.1-cln.swf.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.idle(cmd.Flags().Changed); err != nil {
				return err
			}
			if err := apart(args, outFile{"malformed", r.bad}, outFile{"starts", r.starts}, outFile{"schedule", r.schedule},
				outFile{"gantt", r.gantt}); err != nil {
				return err
			}
			return playPeriod(cmd.Context(), a, args, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.policy, "policy", sched.Default, "policy")
	f.IntVar(&r.scenario, "scenario", 1, "1 equal cores, 2 cores by Zipf's law, 3 background load")
	f.IntVar(&s.Sites, "sites", s.Sites, "sites")
	f.Int64Var(&s.Cores, "cores", 0, "cores of all sites, instead of as many as --load says")
	f.Float64Var(&s.Load, "load", s.Load, "work of the period over the cores' time in it")
	cli.DurationVar(f, &r.period, "period", 24*time.Hour, "length of the period of submissions, 0 = all of the log, or all after --from")
	f.Int64Var(&r.from, "from", -1, "second of the log at which the period begins, -1 = drawn by the seed")
	f.IntVar(&r.mapping, "mapping", 0, "which mapping of users to sites")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "of every random choice")
	cli.DurationVar(f, &r.unit, "unit", time.Hour, "length of a unit task, 0 = the jobs as they are")
	cli.DurationVar(f, &r.reserve, "reserve-after", 0, "reserve a machine for what waits so long, 0 = never")
	f.Float64Var(&s.Exponent, "zipf", s.Exponent, "exponent of Zipf's law, in scenario 2")
	f.Float64Var(&s.BackgroundShare, "background", s.BackgroundShare, "probability that a user is background, in scenario 3")
	f.StringVar(&r.running, "running", sched.Partial.String(), "how running tasks count: partial or completed")
	f.StringVar(&r.home, "home", "reported", "home runs: reported, unreported, never")
	f.StringVar(&r.leader, "hostile-leader", "", "`SITE` that orders all entries, its own proposals first")
	cli.DurationVar(f, &r.withhold, "withhold", 0, "for how long it withholds others' submissions")
	f.BoolVar(&r.ends, "withhold-ends", false, "it withholds others' reports of ended tasks, too")
	f.BoolVar(&r.choosy, "withhold-selectively", false, "it withholds submissions only while its own tasks wait, ends only while none does")
	f.StringVar(&r.starts, "starts", "", "write every start to `FILE`, CSV")
	f.StringVar(&r.schedule, "schedule", "", "write the schedule to `FILE`, SWF")
	f.StringVar(&r.bad, "malformed", "malformed.txt", "list the logs' malformed lines, if there are any, in `FILE`")
	f.StringVar(&r.gantt, "gantt", "", "draw the schedule to `FILE`, which ends in .svg or .png")
	return cmd
}

// idle refuses flags that would change nothing, alone or besides the others.
func (r *simRun) idle(given func(flag string) bool) error {
	if given("cores") && r.setup.Cores == 0 {
		return cli.Usage("--cores 0: every site needs one; omit the flag for as many as --load says")
	}
	return idleFlags(given, map[string]string{
		"load":       when(r.setup.Cores > 0, "with --cores"),
		"zipf":       when(r.scenario != int(sim.Zipf), "but in --scenario 2"),
		"background": when(r.scenario != int(sim.Background), "but in --scenario 3"),

		"withhold":      when(r.leader == "", "without --hostile-leader"),
		"withhold-ends": when(r.withhold == 0, "without --withhold"),

		"withhold-selectively": when(r.withhold == 0, "without --withhold"),
	})
}

// outFile is a file that a flag asks for, "" = none.
type outFile struct{ flag, path string }

// apart refuses to write over a log, or two things to one file.
func apart(logs []string, files ...outFile) error {
	taken := map[string]string{}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		path := filepath.Clean(f.path)
		if other, ok := taken[path]; ok {
			return cli.Usage("--%s and --%s are both %s: name two files", other, f.flag, f.path)
		}
		taken[path] = f.flag
		for _, log := range logs {
			if sameFile(path, log) {
				return cli.Usage("--%s %s would overwrite a log: name another file", f.flag, f.path)
			}
		}
	}
	return nil
}

// sameFile reports whether two paths lead to one file that is there.
func sameFile(a, b string) bool {
	at, errA := os.Stat(a)
	bt, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(at, bt)
}

func playPeriod(ctx context.Context, a *cli.App, args []string, r simRun) error {
	rules, err := r.check()
	if err != nil {
		return simError(err)
	}
	logs, err := openLogs(ctx, a, args, r.bad)
	if err != nil {
		return err
	}
	w := sim.Merge(logs...)
	in, err := r.instance(w, rules)
	if err != nil {
		return simError(err)
	}
	if in.TooWide > 0 {
		a.Note("%d jobs are wider than every site they could run at: left out; give the sites more --cores", in.TooWide)
	}
	began := time.Now()
	out, err := sim.PlayContext(ctx, &in.Case)
	if err != nil {
		return simError(err)
	}
	took := time.Since(began)
	a.Note("%d tasks in %s (%.0f a second), %d entries", len(in.Tasks), took.Round(time.Millisecond), float64(len(in.Tasks))/took.Seconds(), out.Entries)
	title := fmt.Sprintf("%s from second %d: scenario %d, %s, seed %d", w.Name, in.From, r.scenario, r.policy, r.setup.Seed)
	if in.Leader != nil {
		a.Note("%d commands were withheld", out.Withheld)
		title += fmt.Sprintf(", led by %s, which withholds for %s", r.leader, r.withhold)
	}
	if err := r.write(in, out, title); err != nil {
		return err
	}
	return showRun(a, in, out)
}

// check looks at the flags alone, before any log is read, and puts them into the
// setup.
func (r *simRun) check() (rules sim.Rules, err error) {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"period", r.period}, {"unit", r.unit}, {"reserve-after", r.reserve}} {
		if d.value < 0 || d.value%time.Second != 0 {
			return rules, cli.Usage("--%s %s: must be whole seconds, 0 or more", d.flag, d.value)
		}
	}
	if r.from < -1 {
		return rules, cli.Usage("--from %d: must be 0 or more, or -1 for one that the seed draws", r.from)
	}
	if _, err = chart.FormatOf(r.gantt); r.gantt != "" && err != nil {
		return rules, cli.Usage("--gantt: %w", err)
	}
	if r.mapping < 0 {
		return rules, cli.Usage("--mapping %d: must be 0 or more", r.mapping)
	}
	if rules.Running, err = sched.ParseMode(r.running); err != nil {
		return rules, cli.Usage("--running: %w", err)
	}
	homes := map[string]sim.Home{"reported": sim.HomeReported, "unreported": sim.HomeUnreported, "never": sim.HomeNever}
	home, ok := homes[r.home]
	if !ok {
		return rules, cli.Usage("--home %q: must be reported, unreported or never", r.home)
	}
	rules.Home = home
	if _, err := sched.New(r.policy, rules.Running); err != nil {
		return rules, cli.Usage("--policy: %w", err)
	}
	if _, err := r.hostile(); err != nil {
		return rules, err
	}
	s := &r.setup
	s.Scenario, s.Period, s.Unit = sim.Scenario(r.scenario), int64(r.period/time.Second), int64(r.unit/time.Second)
	known := *s
	known.Period = max(1, known.Period) // 0 is the log's, which nobody knows yet
	return rules, known.Validate()
}

// hostile returns the leader that --hostile-leader asks for, nil for none.
func (r *simRun) hostile() (*sim.HostileLeader, error) {
	if r.leader == "" {
		return nil, nil
	}
	withhold, err := withheldSeconds(r.withhold)
	if err != nil {
		return nil, err
	}
	for i := range min(r.setup.Sites, sim.MaxSites) {
		if sim.SiteName(i) == r.leader {
			return &sim.HostileLeader{Site: i, Withhold: withhold, Ends: r.ends, Selective: r.choosy}, nil
		}
	}
	return nil, cli.Usage("--hostile-leader %q: must be one of the %d sites, %s to %s", r.leader, r.setup.Sites,
		sim.SiteName(0), sim.SiteName(max(0, min(r.setup.Sites, sim.MaxSites)-1)))
}

// instance makes the case that the flags ask for.
func (r *simRun) instance(w *sim.Workload, rules sim.Rules) (*sim.Instance, error) {
	s, from := &r.setup, r.from
	if s.Period == 0 {
		from = max(from, 0)
		s.Period = max(1, w.Span()+1-from) // what begins after the end is refused below
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("%s from second %d to its last job: %w; choose a --period", w.Name, from, err)
		}
	}
	if from < 0 {
		var err error
		if from, _, err = w.Draw(s, 0); err != nil {
			return nil, err
		}
	}
	in, err := w.Instance(s, from, r.mapping)
	if err != nil {
		return nil, err
	}
	in.Params = sim.Params(r.policy)
	in.Params.ReserveAfterMs = r.reserve.Milliseconds()
	in.Params.Running, in.Home = rules.Running, rules.Home
	in.Leader, err = r.hostile()
	return in, err
}

// write writes the files that were asked for.
func (r *simRun) write(in *sim.Instance, out *sim.Outcome, title string) error {
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{r.starts, func(w io.Writer) error { return sim.StartLog(w, &in.Case, out) }},
		{r.schedule, func(w io.Writer) error { return sim.Schedule(w, &in.Case, out, "; Note: "+title) }},
		{r.gantt, func(w io.Writer) error { return r.draw(w, in, out, title) }},
	} {
		if f.path != "" {
			if err := writeFile(f.path, f.write); err != nil {
				return err
			}
		}
	}
	return nil
}

// draw draws the schedule in the format that --gantt asks for.
func (r *simRun) draw(w io.Writer, in *sim.Instance, out *sim.Outcome, title string) error {
	format, err := chart.FormatOf(r.gantt)
	if err != nil {
		return err
	}
	return chart.Gantt(w, format, &in.Case, out, title)
}

// siteWaits is one site's line.
type siteWaits struct {
	Site       string  `json:"site"`
	Cores      int64   `json:"cores"`
	Tasks      int     `json:"tasks"`
	Background int     `json:"background"`
	Wait       int64   `json:"wait_s"`
	Mean       float64 `json:"mean_wait_s"`
	RanForAll  int     `json:"ran"`    // federation tasks on its machines
	Lent       int     `json:"lent"`   // of these, for others
	Longest    int64   `json:"most_s"` // longest wait
}

func waitsBySite(in *sim.Instance, out *sim.Outcome) []siteWaits {
	sites := make([]siteWaits, len(in.Cores))
	for i := range sites {
		sites[i].Site, sites[i].Cores = sim.SiteName(i), in.Cores[i]
	}
	for i := range in.Tasks {
		t := &in.Tasks[i]
		s := &sites[t.Site]
		if t.Background {
			s.Background++
			continue
		}
		wait := out.Start[i] - t.Release
		s.Tasks++
		s.Wait += wait
		s.Longest = max(s.Longest, wait)
		sites[out.Site[i]].RanForAll++
		if out.Site[i] != t.Site {
			sites[out.Site[i]].Lent++
		}
	}
	for i := range sites {
		if s := &sites[i]; s.Tasks > 0 {
			s.Mean = float64(s.Wait) / float64(s.Tasks)
		}
	}
	return sites
}

func showRun(a *cli.App, in *sim.Instance, out *sim.Outcome) error {
	sites := waitsBySite(in, out)
	return a.Show(sites, func(w io.Writer) {
		cli.Row(w, "SITE", "CORES", "TASKS", "BACKGROUND", "RAN", "LENT", "WAIT", "MEAN WAIT", "LONGEST")
		for _, s := range sites {
			cli.Row(w, s.Site, s.Cores, s.Tasks, s.Background, s.RanForAll, s.Lent, seconds(s.Wait),
				seconds(int64(s.Mean)), seconds(s.Longest))
		}
	})
}

// seconds words a time that may be far longer than a time.Duration holds: the
// waits of a real log's jobs add up to centuries.
func seconds(s int64) string {
	switch h, m := s/3600, s/60%60; {
	case h > 0:
		return fmt.Sprintf("%dh%dm%ds", h, m, s%60)
	case m > 0:
		return fmt.Sprintf("%dm%ds", m, s%60)
	}
	return fmt.Sprintf("%ds", s)
}
