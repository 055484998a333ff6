package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// idleFor a broker has nothing to do before it is looked at.
	idleFor = 5 * time.Second
	// memoryBags of shortTasks jobs each are run through the federation.
	memoryBags = 3
)

// measureMemory looks at the brokers' resident memory, idle with nothing in the
// state and idle after some jobs.
func measureMemory(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "memory", siteCount, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	if err := addMemory(ctx, t, fed, "idle, empty", "Nomad: 121 MB"); err != nil {
		return err
	}
	for range memoryBags {
		if err := runSeparate(ctx, fed.Sites[0]); err != nil {
			return err
		}
	}
	return addMemory(ctx, t, fed, fmt.Sprintf("idle, after %d jobs", memoryBags*shortTasks), "Nomad: 312 to 509 MB")
}

// addMemory adds the largest of the brokers.
func addMemory(ctx context.Context, t *table, fed *testbed.Federation, when, peers string) error {
	if err := pause(ctx, idleFor); err != nil {
		return err
	}
	most, sum := 0.0, 0.0
	for _, s := range fed.Sites {
		mib, err := residentMiB(s)
		if err != nil {
			return err
		}
		most, sum = max(most, mib), sum+mib
	}
	t.add(figure{
		name: "memory of a broker (RSS), " + when, measured: most, unit: "MiB",
		note: fmt.Sprintf("largest of %d, mean %.0f; %s", len(fed.Sites), sum/float64(len(fed.Sites)), peers),
	})
	return nil
}

// residentMiB of a broker's process.
func residentMiB(s *testbed.Site) (float64, error) {
	pid, err := s.PID()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", s.Name, err)
	}
	return parseResident(string(text))
}

// parseResident finds "VmRSS: 1234 kB" in a process's status.
func parseResident(status string) (float64, error) {
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "VmRSS:" || f[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse resident memory %q: %w", f[1], err)
		}
		return float64(kib) / 1024, nil
	}
	return 0, errors.New("the process's status names no resident memory")
}
