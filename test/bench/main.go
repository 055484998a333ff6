// Bench measures the figures that the README quotes, each beside its own limit
// in the same run: submissions, time to a running process, tasks per second,
// and the state machine's benchmarks. It drives real broker processes over
// HTTP (steps 1 to 7 of a job's way) and imports nothing of the broker.
//
// Usage: go run ./test/bench -binary bin/cloudshare [-out FILE] [-only NAME]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// total bounds the whole run, whatever hangs.
const total = 6 * time.Minute

// section measures some figures. It fills the table with what it has measured
// even when it returns an error.
type section struct {
	name string
	run  func(ctx context.Context, env environment, t *table) error
}

var sections = []section{
	{"submissions", measureSubmissions},
	{"latency", measureLatency},
	{"throughput", measureThroughput},
	{"fsm", runStateBenchmarks},
}

// environment of a run.
type environment struct {
	binary string // absolute path of cloudshare
	stamp  string // absolute path of the stamp program
	dir    string // scratch space on the disk that is measured
	notes  io.Writer
}

func main() {
	binary := flag.String("binary", "bin/cloudshare", "the cloudshare `file` to measure")
	out := flag.String("out", "", "also write the table to this `file`")
	only := flag.String("only", "", "comma-separated `sections`: submissions, latency, throughput, fsm")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	if err := bench(ctx, *binary, *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, binary, out, only string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cloudshare-bench-")
	if err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	defer os.RemoveAll(dir)
	env := environment{dir: dir, notes: os.Stderr, stamp: filepath.Join(dir, "stamp")}
	if env.binary, err = filepath.Abs(binary); err != nil {
		return fmt.Errorf("find binary: %w", err)
	}
	if err := buildStamp(ctx, env.stamp); err != nil {
		return err
	}
	t := newTable(describeMachine())
	var failed []error
	for _, s := range chosen {
		began := time.Now()
		if err := s.run(ctx, env, t); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		fmt.Fprintf(env.notes, "%s: %.0f s\n", s.name, time.Since(began).Seconds())
	}
	t.write(os.Stdout)
	if out != "" {
		failed = append(failed, save(out, t))
	}
	return errors.Join(failed...)
}

func choose(only string) ([]section, error) {
	if only == "" {
		return sections, nil
	}
	var chosen []section
next:
	for name := range strings.SplitSeq(only, ",") {
		for _, s := range sections {
			if s.name == name {
				chosen = append(chosen, s)
				continue next
			}
		}
		return nil, fmt.Errorf("no section is called %q", name)
	}
	return chosen, nil
}

func save(path string, t *table) error {
	var b strings.Builder
	t.write(&b)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("save figures: %w", err)
	}
	return nil
}
