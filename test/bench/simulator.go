package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// measureSimulator plays synthetic workloads with the binary: unit tasks and
// whole jobs through brokers and state machine, and instances of the study with
// coalitions counted, and with coalitions played.
func measureSimulator(ctx context.Context, env environment, t *table) error {
	log, jobs := filepath.Join(env.dir, "bench.swf"), pick(env, 100_000, 5_000)
	if err := writeLog(log, jobs, 60, 5); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, environment, *table, string, int) error{
		measureFCFS, measureGrowth,
		measureStudy,
	} {
		if err := measure(ctx, env, t, log, jobs); err != nil {
			return err
		}
	}
	return nil
}

// measureFCFS plays a whole log with plain first come, first served.
func measureFCFS(ctx context.Context, env environment, t *table, log string, jobs int) error {
	r, err := simulate(ctx, env, "run", "--sites", "1", "--cores", "240", "--unit", "0", "--period", "0", "--policy", "ROUND_ROBIN", log)
	if err != nil {
		return err
	}
	rate, err := r.rate()
	if err != nil {
		return err
	}
	const peers = "OCST 28 k, Batsim 3.3 k, AccaSim 2.4 k"
	t.add(figure{
		name: "simulator, jobs of one site, FCFS", measured: rate, unit: "jobs/s", aim: aim{atLeast: 100_000},
		peers: peers, note: "one core; jobs as they are, every job through broker and log",
	})
	t.add(figure{
		name: "  with start and reading of the log", measured: float64(jobs) / r.took.Seconds(), unit: "jobs/s",
		peers: peers, note: fmt.Sprintf("the whole process, %.2f s; at most %d MiB", r.took.Seconds(), r.mib),
	})
	return nil
}

// measureGrowth plays unit tasks of three periods, each three times as long: the
// cost of a task should stay.
func measureGrowth(ctx context.Context, env environment, t *table, log string, _ int) error {
	const base = 24
	var first float64 // µs a task, of the shortest
	for _, hours := range pick(env, []int{base, 3 * base, 9 * base}, []int{base / 4, base / 2, base}) {
		cost, tasks := math.Inf(1), 0
		for range 3 { // the least disturbed counts
			r, err := simulate(ctx, env, "run", "--from", "0", "--load", "1", "--period", fmt.Sprintf("%dh", hours), log)
			if err != nil {
				return err
			}
			rate, err := r.rate()
			if err != nil {
				return err
			}
			cost, tasks = min(cost, 1e6/rate), r.tasks()
		}
		f := figure{
			name: fmt.Sprintf("simulator, unit tasks of five sites, %d h", hours), measured: cost, unit: "µs/task",
			note: fmt.Sprintf("%d tasks, %.0f/s; one core, SIMPL_DIRECT, best of 3", tasks, 1e6/cost),
		}
		if first == 0 {
			first = cost
		} else {
			f.limit, f.aim, f.note = first, aim{maxRatio: 1.5}, f.note+"; limit: the shortest period's"
		}
		t.add(f)
	}
	return nil
}

// The whole study: three logs × 20 periods × 3 scenarios × 5 loads × 4 mappings,
// in which policies beyond the paper's play, too; and for its sensitivity table 15
// periods × 3 loads of each log × 20 choices and scenarios. It checks one in 50
// instances by playing all coalitions.
const (
	studyInstances = 3 * 20 * 3 * 5 * 4
	studyOthers    = 3 * 15 * 3 * 20
	studySample    = 50
)

// Jobs of the study's log: as many a day, 580, and as many unit tasks, 4560, as the
// mean of HPC2N (160, 4250), LPC EGEE (900, 1620) and MetaCentrum (580, 7810).
const (
	apartInStudy  = 150 // seconds
	widestInStudy = 10
	// realCost is the processor time of an instance of the three logs over that of one
	// of this log: real jobs come in bursts, and with as many tasks are fewer.
	realCost = 0.77
)

// measureStudy plays a fixed part of the study, on one synthetic log, with all
// coalitions counted and with all played too, and extrapolates to the whole.
func measureStudy(ctx context.Context, env environment, t *table, _ string, _ int) error {
	log := filepath.Join(env.dir, "study.swf")
	if err := writeLog(log, 10_000, apartInStudy, widestInStudy); err != nil {
		return err
	}
	fast, others, err := studyCounted(ctx, env, t, log)
	if err != nil {
		return err
	}
	const few = 2 * 3
	played, err := simulate(ctx, env, "table1", "--periods", "2", "--mappings", "1", "--loads", "1", "--sensitivity", "0",
		"--sample", "1", "--out", filepath.Join(env.dir, "study-played"), log)
	if err != nil {
		return err
	}
	slow := studyPart{played, few}
	t.add(figure{name: "study, an instance, coalitions played too", measured: slow.each() * 1000, unit: "ms", note: fmt.Sprintf("all cores; mean of %d", few)})
	const all = studyInstances + studyOthers
	checked := func(each func(studyPart) float64) float64 {
		return (studyInstances*each(fast) + studyOthers*each(others) + all/studySample*(each(slow)-each(fast))) / 60
	}
	of := fmt.Sprintf("EXTRAPOLATED from %d of %d instances", fast.instances+others.instances+few, all)
	t.add(figure{
		name: "whole study, one in 50 checked", measured: checked(studyPart.each), unit: "min", aim: aim{below: 10},
		note: of + "; synthetic: 580 jobs and 4560 tasks a day, the means of the three logs, but heavier; all cores",
	})
	t.add(figure{
		name: "  its processor time", measured: checked(studyPart.cost), unit: "min",
		note: fmt.Sprintf("likewise; depends little on what else runs; %d cores. Instances of the real logs took %.0f %% of it when both were measured", runtime.NumCPU(), 100*realCost),
	})
	t.add(figure{name: "whole study, no theorem", measured: all * slow.each() / 60, unit: "min", note: of + "; every coalition played"})
	most, err := studyMemory(ctx, env)
	if err != nil {
		return err
	}
	rows := float64(all) / float64(fast.instances+others.instances) * float64(others.written) / (1 << 20)
	t.add(figure{
		name: "whole study, memory", measured: float64(max(most, fast.mib, others.mib, played.mib)) + rows, unit: "MiB", aim: aim{below: 1024},
		note: fmt.Sprintf("EXTRAPOLATED: the most of these runs and of one with as many jobs as the three logs have, and %.0f MiB for the other rows", rows),
	})
	return nil
}

// studyPart is a part of the study that was played by itself.
type studyPart struct {
	*simulation
	instances int
}

// each returns the time of an instance, in seconds.
func (p studyPart) each() float64 { return p.took.Seconds() / float64(p.instances) }

// cost returns the processor time of an instance, in seconds.
func (p studyPart) cost() float64 { return p.used.Seconds() / float64(p.instances) }

// studyCounted plays two periods with coalitions counted, then goes on with the
// sensitivity table of the first.
func studyCounted(ctx context.Context, env environment, t *table, log string) (fast, others studyPart, err error) {
	play := func(sensitivity string) (*simulation, error) {
		return simulate(ctx, env, "table1", "--periods", pick(env, "2", "1"), "--mappings", "1", "--sensitivity", sensitivity,
			"--sample", "0", "--out", filepath.Join(env.dir, "study-counted"), log)
	}
	fast.instances, others.instances = pick(env, 2, 1)*3*5, 3*20
	if fast.simulation, err = play("0"); err != nil {
		return fast, others, err
	}
	if others.simulation, err = play("1"); err != nil {
		return fast, others, err
	}
	t.add(figure{
		name: "study, an instance, coalitions counted", measured: fast.each() * 1000, unit: "ms",
		note: fmt.Sprintf("all cores; all policies and the ceiling, mean of %d", fast.instances),
	})
	t.add(figure{
		name: "study, an instance by another choice", measured: others.each() * 1000, unit: "ms",
		note: fmt.Sprintf("all cores; the paper's five policies, mean of %d", others.instances),
	})
	return fast, others, nil
}

// studyMemory plays an instance of a log as long as the paper's three together, and
// returns the process's most, in MiB.
func studyMemory(ctx context.Context, env environment) (int64, error) {
	log := filepath.Join(env.dir, "long.swf")
	if err := writeLog(log, pick(env, 541_000, 20_000), apartInStudy, widestInStudy); err != nil {
		return 0, err
	}
	r, err := simulate(ctx, env, "table1", "--periods", "1", "--mappings", "1", "--loads", "1", "--sensitivity", "0",
		"--sample", "0", "--out", filepath.Join(env.dir, "study-long"), log)
	if err != nil {
		return 0, err
	}
	return r.mib, nil
}

// simulation is a run of the binary.
type simulation struct {
	took    time.Duration
	used    time.Duration // of the cores
	mib     int64         // most memory
	notes   []byte
	written int64 // bytes of results, of table1
}

var (
	ratePattern  = regexp.MustCompile(`\((\d+) a second\)`)
	tasksPattern = regexp.MustCompile(`(\d+) tasks in `)
)

// rate returns what `sim run` says of its speed, in tasks a second.
func (s *simulation) rate() (float64, error) {
	m := ratePattern.FindSubmatch(s.notes)
	if m == nil {
		return 0, fmt.Errorf("sim run says nothing of its speed: %s", s.notes)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// tasks returns how many tasks `sim run` says it played, 0 if it does not say.
func (s *simulation) tasks() int {
	m := tasksPattern.FindSubmatch(s.notes)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1])) // digits; too many are no number of tasks
	return n
}

func simulate(ctx context.Context, env environment, args ...string) (*simulation, error) {
	cmd := exec.CommandContext(ctx, env.binary, append([]string{"sim"}, args...)...)
	var notes bytes.Buffer
	cmd.Stderr = &notes
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cloudshare sim %s: %w: %s", args[0], err, notes.Bytes())
	}
	s := &simulation{
		took: time.Since(began), notes: notes.Bytes(),
		used: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok { // on Linux it is one
		s.mib = usage.Maxrss >> 10
	}
	if i := slices.Index(args, "--out"); i >= 0 {
		results, _ := filepath.Glob(filepath.Join(args[i+1], "*.jsonl")) // a good pattern
		for _, path := range results {
			info, err := os.Stat(path)
			if err != nil {
				return nil, fmt.Errorf("measure results: %w", err)
			}
			s.written += info.Size()
		}
	}
	return s, nil
}

// writeLog writes so many jobs, so many seconds apart on average, of one core to
// the widest, always the same; a minute apart and up to 5 wide they keep 240 cores
// two thirds busy.
func writeLog(path string, jobs int, apart float64, widest int) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create workload: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	rng := rand.New(rand.NewPCG(1, 2))
	submit := 0.0
	for i := range jobs {
		submit += rng.ExpFloat64() * apart
		fmt.Fprintf(w, "%d %d -1 %d %d -1 -1 -1 -1 -1 1 %d -1 -1 -1 -1 -1 -1\n", i+1, int(submit), 1+rng.IntN(6400), 1+rng.IntN(widest), rng.IntN(40))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write workload: %w", err)
	}
	return nil
}
