// Command chaos breaks a federation of real brokers on purpose, while clients use it,
// and checks from outside what it promises: see DESIGN.md beside this file.
//
//	chaos -seed 7 -sites 5 -for 2m     a drawn run
//	chaos -scenario fence,power        written ones; "all" for all, -list names them
//	chaos -suite short -seed 1         a number of both, as make chaos-short
//	chaos -mutations                   each broken promise is found: make chaos-mutations
//
// It needs root: the brokers' network is made of namespaces. The same seed
// gives the same traffic and the same faults at the same times.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// options are the flags.
type options struct {
	coordination string
	seed         uint64
	sites        int
	length       time.Duration
	disks        bool
	slow         bool
	hostile      bool
	far          bool
	dir          string
	binary       string
	scenario     string
	suite        string
	mutations    bool
	mutate       string
	keep         bool
	list         bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "draw traffic and faults from this; 0 = a random one")
	flag.IntVar(&o.sites, "sites", 5, "number of sites of a drawn run")
	flag.DurationVar(&o.length, "for", time.Minute, "how long traffic and faults of a drawn run last; settling takes up to a minute more")
	flag.BoolVar(&o.disks, "disks", true, "give every site of a drawn run a disk that loses what was not synced")
	flag.BoolVar(&o.slow, "slow", false, "let disks of a drawn run become slow; needs /dev/fuse")
	flag.BoolVar(&o.hostile, "hostile", false, "let one site of a drawn run turn against the others")
	flag.BoolVar(&o.far, "far", false, "put the sites of a drawn run in different places: three within 10 ms, one at 80 ms, one at 150 ms")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "make the folder of the run here")
	flag.StringVar(&o.binary, "binary", "", "test this cloudshare binary instead of building one")
	flag.StringVar(&o.scenario, "scenario", "", "play these scenarios, separated by commas; all = every one")
	flag.StringVar(&o.suite, "suite", "", "play a suite: short (4 minutes), long (12 minutes) or far (one run of short: sites in different places)")
	flag.BoolVar(&o.mutations, "mutations", false, "switch off one safeguard after the other, or those of -scenario: its scenario must fail")
	flag.StringVar(&o.mutate, "mutate", "", "play without these safeguards, separated by commas; needs a binary built with -tags mutate")
	flag.BoolVar(&o.keep, "keep", false, "keep logs and marks also when nothing was found")
	flag.StringVar(&o.coordination, "coordination", "raft", "where the federation's log is: raft or zookeeper (one server, on a host of its own)")
	flag.BoolVar(&o.list, "list", false, "list the scenarios")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if o.list {
		for _, s := range scenarios() {
			fmt.Printf("%-16s %s\n", s.name, s.says)
		}
		return nil
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1e6) + 1
	}
	parts, err := o.parts()
	if err != nil {
		return err
	}
	dir, lock, err := makeDir(o.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = o.inDir(ctx, dir, parts)
	if err == nil && !o.keep {
		return os.RemoveAll(dir)
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, keptFile), nil, 0o600),
		fmt.Errorf("logs and marks are in %s", dir))
}

// inDir builds what is needed and plays the parts.
func (o options) inDir(ctx context.Context, dir string, parts []part) error {
	s := stage{dir: dir, binary: o.binary, mutate: o.mutate, keep: o.keep, zk: o.coordination == "zookeeper"}
	var err error
	if s.marker, err = buildMarker(ctx, dir); err != nil {
		return err
	}
	if o.mutations || slices.ContainsFunc(parts, func(p part) bool { return p.slow }) {
		if s.slowfs, err = buildSlowfs(ctx, dir); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(parts, func(p part) bool { return p.hostile }) {
		if s.hostileBinary, err = buildHostile(ctx, dir); err != nil {
			return err
		}
	}
	if o.mutations {
		unplayed := testMutations()
		if o.scenario != "" {
			unplayed = nil
		}
		return s.mutations(ctx, chosen(o.scenario), unplayed)
	}
	if s.binary == "" {
		if s.binary, err = testbed.Build(ctx, dir); err != nil {
			return err
		}
	}
	return s.play(ctx, parts)
}

// buildHostile builds what a site runs that turns against the others, beside what the others run.
func buildHostile(ctx context.Context, dir string) (string, error) {
	dir = filepath.Join(dir, "hostile-build")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make folder for a hostile broker: %w", err)
	}
	return testbed.Build(ctx, dir, "mutate")
}

// buildMarker builds the task's program: static, so that it starts at once. Its folder is
// one that sandboxes show.
func buildMarker(ctx context.Context, dir string) (string, error) {
	shared := filepath.Join(dir, "program")
	if err := testbed.MakeShared(shared); err != nil {
		return "", fmt.Errorf("make folder for mark: %w", err)
	}
	bin := filepath.Join(shared, "mark")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", bin,
		"github.com/cloudshare/cloudshare/test/chaos/mark")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mark: %w\n%s", err, out)
	}
	return bin, nil
}
