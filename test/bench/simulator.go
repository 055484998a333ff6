package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// measureSimulator plays synthetic workloads with the binary: unit tasks and
// whole jobs through brokers and state machine, and instances of the study with
// coalitions counted, and with coalitions played.
func measureSimulator(ctx context.Context, env environment, t *table) error {
	log := filepath.Join(env.dir, "bench.swf")
	if err := writeLog(log, pick(env, 100_000, 5_000)); err != nil {
		return err
	}
	rate, err := simRate(ctx, env, "run", "--sites", "1", "--cores", "240", "--unit", "0", "--period", "0", "--policy", "ROUND_ROBIN", log)
	if err != nil {
		return err
	}
	t.add(figure{
		name: "simulator, jobs of one site, FCFS", measured: rate, unit: "jobs/s", aim: aim{atLeast: 100_000},
		peers: "OCST 28 k, Batsim 3.3 k, AccaSim 2.4 k", note: "one core; jobs as they are, every job through broker and log",
	})
	rate, err = simRate(ctx, env, "run", "--load", "1", "--period", pick(env, "72h", "24h"), log)
	if err != nil {
		return err
	}
	t.add(figure{name: "simulator, unit tasks of five sites", measured: rate, unit: "tasks/s", note: "one core; SIMPL_DIRECT"})
	return measureStudy(ctx, env, t, log)
}

// measureStudy plays a few instances of the study, with and without the theorem.
func measureStudy(ctx context.Context, env environment, t *table, log string) error {
	for _, way := range []struct{ name, sample string }{{"counted", "0"}, {"played", "1"}} {
		began := time.Now()
		usage, _, err := simulate(ctx, env, "table1", "--periods", "2", "--mappings", "1", "--loads", "1", "--sensitivity", "0",
			"--sample", way.sample, "--out", filepath.Join(env.dir, "study-"+way.name), log)
		if err != nil {
			return err
		}
		const instances = 2 * 3
		t.add(figure{
			name: "study, an instance, coalitions " + way.name, measured: time.Since(began).Seconds() * 1000 / instances, unit: "ms",
			note: fmt.Sprintf("five policies; process at most %d MiB", usage.Maxrss>>10),
		})
	}
	return nil
}

var ratePattern = regexp.MustCompile(`\((\d+) a second\)`)

// simRate is what `sim run` says of its speed.
func simRate(ctx context.Context, env environment, args ...string) (float64, error) {
	_, notes, err := simulate(ctx, env, args...)
	if err != nil {
		return 0, err
	}
	m := ratePattern.FindSubmatch(notes)
	if m == nil {
		return 0, fmt.Errorf("sim run says nothing of its speed: %s", notes)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

func simulate(ctx context.Context, env environment, args ...string) (*syscall.Rusage, []byte, error) {
	cmd := exec.CommandContext(ctx, env.binary, append([]string{"sim"}, args...)...)
	var notes bytes.Buffer
	cmd.Stderr = &notes
	if err := cmd.Run(); err != nil {
		return nil, nil, fmt.Errorf("cloudshare sim %s: %w: %s", args[0], err, notes.Bytes())
	}
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage) // on Linux it is one
	return usage, notes.Bytes(), nil
}

// writeLog writes so many jobs, about as wide, long and frequent as keeps 240
// cores two thirds busy, always the same.
func writeLog(path string, jobs int) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create workload: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	rng := rand.New(rand.NewPCG(1, 2))
	submit := 0.0
	for i := range jobs {
		submit += rng.ExpFloat64() * 60
		fmt.Fprintf(w, "%d %d -1 %d %d -1 -1 -1 -1 -1 1 %d -1 -1 -1 -1 -1 -1\n", i+1, int(submit), 1+rng.IntN(6400), 1+rng.IntN(5), rng.IntN(40))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write workload: %w", err)
	}
	return nil
}
