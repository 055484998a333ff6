// Command bench measures the product's figures, each beside its own limit where it has one,
// in the same run: submissions, also by users, time to a running process, tasks per second,
// memory, lists of a million jobs, event streams, jobs that wait for others and tasks of
// workflow engines, the state machine's benchmarks and its longest entries, what
// policies cost, how fast a history is gone through again, files that travel
// with tasks, containers and Kubernetes where they are there, and, when
// asked for, what the loss of a broker costs, sites far apart and many sites. It drives
// real broker processes over HTTP (all steps of a job's way) and
// imports nothing of the broker.
//
// Usage: go run ./test/bench -binary bin/cloudshare [-beside OTHER] [-out FILE] [-only NAME,…] [-quick] [-o json]
//
// -beside has another build of the program, such as an earlier commit's, take turns in sections users and builds.
// -quick shows within some two minutes that everything works: shorter windows,
// fewer starts, smaller queues, the corners of the state machine's grid. Its
// figures are no figures to quote.
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

// total bounds the sections that always run, whatever hangs. On two cores of their own
// they take some twelve minutes.
const total = 16 * time.Minute

// section measures some figures. It fills the table with what it has measured
// even when it returns an error.
type section struct {
	name string
	run  func(ctx context.Context, env environment, t *table) error
	// group of sections that run only when they or the group are asked for.
	group string
	// limit of a section in a group.
	limit time.Duration
}

var sections = []section{
	{name: "submissions", run: measureSubmissions},
	{name: "users", run: measureUsers},
	{name: "latency", run: measureLatency},
	{name: "throughput", run: measureThroughput},
	{name: "memory", run: measureMemory},
	{name: "lists", run: measureLists},
	{name: "events", run: measureEvents},
	{name: "workflows", run: measureWorkflows},
	{name: "simulator", run: measureSimulator},
	{name: "fsm", run: runStateBenchmarks},
	{name: "entries", run: measureEntries},
	{name: "policies", run: measurePolicies},
	{name: "identity", run: measureIdentity},
	{name: "audit", run: measureAudit},
	{name: "files", run: measureFiles},
	{name: "sandboxes", run: measureSandboxes},
	{name: "containers", run: measureContainers},
	{name: "kubernetes", run: measureKubernetes},
	{name: "zookeeper", run: measureZooKeeper, group: "backends", limit: 6 * time.Minute},
	{name: "lead", run: measureLeadLoss, group: "losses", limit: 6 * time.Minute},
	{name: "slowdisk", run: measureSlowDisk, group: "losses", limit: 5 * time.Minute},
	{name: "executor", run: measureExecutorLoss, group: "losses", limit: 4 * time.Minute},
	{name: "pauses", run: measurePauses, group: "losses", limit: 7 * time.Minute},
	{name: "kept", run: measureKept, group: "losses", limit: 3 * time.Minute},
	{name: "far-submissions", run: measureFarSubmissions, group: "wan", limit: 6 * time.Minute},
	{name: "far-starts", run: measureFarStarts, group: "wan", limit: 4 * time.Minute},
	{name: "far-arrays", run: measureFarArrays, group: "wan", limit: 4 * time.Minute},
	{name: "far-leader", run: measureFarLeader, group: "wan", limit: 6 * time.Minute},
	{name: "far-site", run: measureFarSite, group: "wan", limit: 5 * time.Minute},
	{name: "far-noise", run: measureFarNoise, group: "wan", limit: 3 * time.Minute},
	{name: "far-place", run: measureFarPlace, group: "wan", limit: 8 * time.Minute},
	{name: "far-nonvoter", run: measureFarNonVoter, group: "wan", limit: 4 * time.Minute}, // the last: its site stays
	{name: "scale", run: measureScale, group: "scale", limit: 12 * time.Minute},
	{name: "scale-far", run: measureScaleFar, group: "scale-far", limit: 8 * time.Minute},
	{name: "builds", run: measureBuilds, group: "builds", limit: 20 * time.Minute},
}

// environment of a run.
type environment struct {
	binary string // absolute path of cloudshare
	stamp  string // absolute path of the stamp program; sandboxes see its folder, see shares
	dir    string // scratch space on the disk that is measured
	notes  io.Writer
	// beside is another build of cloudshare that takes turns in sections users and builds; empty means none.
	beside string
	quick  bool
	// coordination of federations that are started; empty means raft. zk and zkAuth
	// say where a tree is.
	coordination, zk, zkAuth string
	far                      *farShared // what sections of far sites share
}

// pick returns the value for this kind of run.
func pick[T any](env environment, full, quick T) T {
	if env.quick {
		return quick
	}
	return full
}

func main() {
	binary := flag.String("binary", "bin/cloudshare", "the cloudshare `file` to measure")
	out := flag.String("out", "", "also write the table to this `file`")
	form := flag.String("o", "table", "print a `form`: table or json")
	beside := flag.String("beside", "", "another cloudshare `file`, such as an earlier commit's, that takes turns in sections users and builds")
	only := flag.String("only", "", "comma-separated `sections`: submissions, users, latency, throughput, memory, lists, events, workflows, simulator, fsm, entries, policies, identity, audit, files, sandboxes, containers, kubernetes; backends: zookeeper; losses, or some of it: lead, slowdisk, executor, pauses, kept; builds, with -beside; wan, or some of it: far-submissions, far-starts, far-arrays, far-leader, far-site, far-noise, far-place, far-nonvoter; many sites: scale, scale-far")
	quick := flag.Bool("quick", false, "show that everything works, with small numbers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, *binary, *beside, *out, *only, *form, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, binary, beside, out, only, form string, quick bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if form != "table" && form != "json" {
		return fmt.Errorf("-o %q: must be table or json", form)
	}
	dir, err := os.MkdirTemp("", "cloudshare-bench-")
	if err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	defer os.RemoveAll(dir)
	env := environment{dir: dir, notes: os.Stderr, quick: quick, far: &farShared{}}
	if env.stamp, err = prepareStamp(ctx, dir); err != nil {
		return err
	}
	if env.binary, err = filepath.Abs(binary); err != nil {
		return fmt.Errorf("find binary: %w", err)
	}
	if beside != "" {
		if env.beside, err = filepath.Abs(beside); err != nil {
			return fmt.Errorf("find the binary beside: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, budget(chosen))
	defer cancel()
	t := newTable(describeMachine())
	if quick {
		t.machine += "; QUICK: small numbers, nothing to quote"
	}
	var failed []error
	for _, s := range chosen {
		began, before := time.Now(), load()
		if err := s.within(ctx, env, t); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		fmt.Fprintf(env.notes, "%s: %.0f s, load %s before, %s after\n", s.name, time.Since(began).Seconds(), before, load())
	}
	failed = append(failed, env.far.end(t))
	if form == "json" {
		failed = append(failed, t.writeJSON(os.Stdout))
	} else {
		t.write(os.Stdout)
	}
	if out != "" {
		failed = append(failed, save(out, t))
	}
	return errors.Join(failed...)
}

// budget bounds the whole run.
func budget(chosen []section) time.Duration {
	d := total
	for _, s := range chosen {
		d += s.limit
	}
	return d
}

// within runs the section inside its own limit.
func (s section) within(ctx context.Context, env environment, t *table) error {
	if s.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit)
		defer cancel()
	}
	return s.run(ctx, env, t)
}

// choose returns the named sections and groups; without names, the sections
// that are in no group.
func choose(only string) ([]section, error) {
	var chosen []section
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, s := range sections {
			if s.name == name || s.group == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no section is called %q", name)
		}
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
