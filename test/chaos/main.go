// Chaos breaks a federation of real brokers on purpose, while clients use it,
// and checks from outside what it promises: see DESIGN.md beside this file.
//
//	go run ./test/chaos -seed 7 -sites 5 -for 2m
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
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

type options struct {
	seed   uint64
	sites  int
	cores  int
	length time.Duration
	disks  bool
	dir    string
	binary string
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "draw traffic and faults from this; 0 = a random one")
	flag.IntVar(&o.sites, "sites", 5, "number of sites")
	flag.IntVar(&o.cores, "cores", 2, "cores of each site")
	flag.DurationVar(&o.length, "for", time.Minute, "how long traffic and faults last; settling takes up to a minute more")
	flag.BoolVar(&o.disks, "disks", true, "give every site a disk that loses what was not synced")
	flag.StringVar(&o.dir, "dir", "", "make the folder of the run here; default: the system's temporary folder")
	flag.StringVar(&o.binary, "binary", "", "test this cloudshare binary instead of building one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if o.seed == 0 {
		o.seed = rand.Uint64N(1e9) + 1
	}
	dir, lock, err := makeDir(o.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = o.inDir(ctx, dir)
	if err == nil {
		return os.RemoveAll(dir)
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, keptFile), nil, 0o600),
		fmt.Errorf("seed %d; logs and marks are in %s", o.seed, dir))
}

// inDir builds what is needed and plays one plan.
func (o options) inDir(ctx context.Context, dir string) error {
	marker, err := buildMarker(ctx, dir)
	if err != nil {
		return err
	}
	if o.binary == "" {
		if o.binary, err = testbed.Build(ctx, dir); err != nil {
			return err
		}
	}
	fmt.Printf("seed %d, %d sites, %s\n", o.seed, o.sites, o.length)
	p := plan.New(o.seed, plan.Size{Sites: o.sites, Length: o.length, Disks: o.disks})
	r, err := newRun(ctx, fleetOptions{binary: o.binary, dir: dir, sites: o.sites, cores: o.cores, disks: o.disks}, marker, os.Stdout)
	if err != nil {
		return err
	}
	played := r.play(ctx, p)
	found, closed := r.close()
	if err := errors.Join(played, closed); err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %d violations", errFound, len(found))
	}
	fmt.Printf("seed %d: all promises kept\n", o.seed)
	return nil
}

// buildMarker builds the task's program: static, so that it starts at once.
func buildMarker(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(dir, "mark")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", bin,
		"github.com/cloudshare/cloudshare/test/chaos/mark")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mark: %w\n%s", err, out)
	}
	return bin, nil
}
