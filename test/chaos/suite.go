package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// stage is where parts are played: a folder and what was built.
type stage struct {
	dir, binary, marker, slowfs string

	hostileBinary string // what a site runs that turns against the others

	mutate string // safeguards that the brokers work without; "" = none
	keep   bool   // folders stay
	zk     bool   // the federation's log is on ZooKeeper
}

// env returns what the brokers' environment has besides this process's.
func (s stage) env() []string {
	if s.mutate == "" {
		return nil
	}
	return []string{mutateVar + "=" + s.mutate}
}

// part is one federation's life: drawn or written.
type part struct {
	name string
	slow bool // it needs disks that can be made slow
	// hostile: one site turns against the others.
	hostile bool
	play    func(ctx context.Context, s stage, dir string) ([]check.Violation, error)
}

var errFound = errors.New("promises were broken")

// parts that the flags ask for.
func (o options) parts() ([]part, error) {
	switch {
	case o.suite == "short":
		names := []string{"fence", "alone", "power", "full-disk", "members", "hostile", "chain"}
		if o.coordination == "raft" {
			names = append(names, "typo", "forged-term")
		}
		parts := slices.Concat(written(pick(names...)), []part{
			drawn(o.seed, plan.Size{Sites: 3, Length: 15 * time.Second, Disks: true}),
			drawn(o.seed, plan.Size{Sites: 5, Length: 15 * time.Second, Disks: true}),
		})
		if o.coordination == "raft" {
			parts = append(parts, drawn(o.seed, plan.Size{Sites: 5, Length: 15 * time.Second, Far: true}))
		}
		return parts, nil
	case o.suite == "far":
		return []part{drawn(o.seed, plan.Size{Sites: 5, Length: 15 * time.Second, Far: true})}, nil
	case o.suite == "long":
		return slices.Concat(written(sound()), []part{
			drawn(o.seed, plan.Size{Sites: 3, Length: 2 * time.Minute, Disks: true, Slow: haveFuse()}),
			drawn(o.seed, plan.Size{Sites: 5, Length: 3 * time.Minute, Disks: true, Slow: haveFuse(), Hostile: true}),
			drawn(o.seed, plan.Size{Sites: 5, Length: 2 * time.Minute, Disks: true, Far: true}),
		}), nil
	case o.suite != "":
		return nil, fmt.Errorf("suite %q: must be short, long or far", o.suite)
	case o.scenario == "all":
		return written(sound()), nil
	case o.scenario != "":
		names := strings.Split(o.scenario, ",")
		list := pick(names...)
		if len(list) != len(names) {
			return nil, fmt.Errorf("scenario %q: one of them is unknown; -list names all", o.scenario)
		}
		return written(list), nil
	default:
		size := plan.Size{
			Sites: o.sites, Length: o.length, Disks: o.disks, Slow: o.slow, Hostile: o.hostile, Far: o.far,
		}
		return []part{drawn(o.seed, size)}, nil
	}
}

// sound returns the scenarios of brokers as users get them.
func sound() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool { return s.without != "" })
}

// pick returns the scenarios of these names.
func pick(names ...string) []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool { return !slices.Contains(names, s.name) })
}

func written(list []scenario) []part {
	var out []part
	for _, sc := range list {
		out = append(out, part{
			"scenario " + sc.name, sc.slow, sc.fleetOptions.hostile > 0,
			func(ctx context.Context, s stage, dir string) ([]check.Violation, error) {
				return playScenario(ctx, sc, s, dir)
			},
		})
	}
	return out
}

func drawn(seed uint64, size plan.Size) part {
	name := fmt.Sprintf("seed %d, %d sites, %s", seed, size.Sites, size.Length)
	if size.Far {
		name += ", far apart"
	}
	play := func(ctx context.Context, s stage, dir string) ([]check.Violation, error) {
		opts := fleetOptions{
			binary: s.binary, dir: dir, env: s.env(), sites: size.Sites, cores: 2, disks: size.Disks,
			zk: s.zk, slow: size.Slow, slowfs: s.slowfs,
			far: size.Far, seed: seed,
		}
		if size.Hostile {
			opts.hostile = size.Sites // the founder leads at first
			opts.hostileBinary = s.hostileBinary
		}
		r, err := newRun(ctx, opts, s.marker, os.Stdout)
		if err != nil {
			return nil, err
		}
		played := r.play(ctx, plan.New(seed, size))
		found, closed := r.close()
		return found, errors.Join(played, closed)
	}
	return part{name, size.Slow, size.Hostile, play}
}

// play plays the parts one after the other; a failure does not hide later ones.
func (s stage) play(ctx context.Context, parts []part) error {
	var errs []error
	var report []string
	for i, p := range parts {
		began := time.Now()
		fmt.Printf("=== %s\n", p.name)
		found, err := s.one(ctx, p, filepath.Join(s.dir, fmt.Sprint("part-", i+1)))
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		case len(found) > 0:
			errs = append(errs, fmt.Errorf("%s: %w: %s", p.name, errFound, summary(found)))
		}
		report = append(report, fmt.Sprintf("%-28s %5.1fs  %d violations", p.name, time.Since(began).Seconds(), len(found)))
	}
	fmt.Println("===\n" + strings.Join(report, "\n"))
	return errors.Join(errs...)
}

// one plays a part; its folder stays if something was found.
func (s stage) one(ctx context.Context, p part, dir string) ([]check.Violation, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	found, err := p.play(ctx, s, dir)
	if err == nil && len(found) == 0 && !s.keep {
		err = os.RemoveAll(dir)
	}
	return found, err
}

// summary counts violations by rule.
func summary(found []check.Violation) string {
	n := map[check.Rule]int{}
	for _, v := range found {
		n[v.Rule]++
	}
	var out []string
	for rule, times := range n {
		out = append(out, fmt.Sprintf("%s ×%d", rule, times))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
