package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stateBenchmarks are those of package fsm that answer for its figures, with a
// fixed number of operations, since each of Go's usual trial runs would fill a
// queue of a million first.
var stateBenchmarks = []struct{ pattern, quick, benchtime string }{
	{"^Benchmark(Submit|Match|Turnover)$", "^Benchmark(Submit|Match|Turnover)$/^sites=(10|1000)$/^waiting=(1000|1000000)$", "2048x"},
	{"^Benchmark(List|Why)$", "^BenchmarkList$", "200x"},
	{"^BenchmarkSnapshot$", "^BenchmarkSnapshot$/^shared$", "3x"},
}

// stateLimit bounds each of them.
const stateLimit = 100 * time.Second

// runStateBenchmarks runs package fsm's own benchmarks: ns and allocations per
// submit, match and completion in the grid of sizes, pages of jobs, snapshot,
// restore and hash.
func runStateBenchmarks(ctx context.Context, env environment, t *table) error {
	var all []result
	for _, b := range stateBenchmarks {
		pattern := pick(env, b.pattern, b.quick)
		out, err := goBench{of: "fsm", pattern: pattern, benchtime: b.benchtime, limit: stateLimit}.run(ctx)
		results := parseResults(out)
		all = append(all, results...)
		if err != nil {
			return fmt.Errorf("run benchmarks %s of fsm: %w\n%s", pattern, err, out)
		}
		if len(results) == 0 {
			return fmt.Errorf("fsm has no benchmarks %s:\n%s", pattern, out)
		}
	}
	g := gridOf(all)
	g.addAssignments(t)
	g.addGrowth(t)
	t.addSheet(g.sheet())
	t.addSheet(g.growthSheet())
	addPages(t, all)
	addSnapshots(t, all)
	return nil
}

// goBench are benchmarks of a package.
type goBench struct {
	of, pattern, benchtime string
	tags                   string
	short                  bool
	limit                  time.Duration
	environ                []string // besides this program's
}

// run runs them, and returns what they print.
func (g goBench) run(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", fmt.Sprintf("-short=%v", g.short), "-tags", g.tags, "-run", "^$", "-bench", g.pattern, "-benchmem",
		"-benchtime", g.benchtime, "github.com/cloudshare/cloudshare/"+g.of)
	cmd.Env = append(os.Environ(), g.environ...)
	// The test binary is a child of `go test`: both end at the limit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// result is one line of a Go benchmark.
type result struct {
	name   string             // without "Benchmark" and the number of cores
	values map[string]float64 // by unit
}

// value returns NaN where the unit is missing.
func (r result) value(unit string) float64 {
	if v, ok := r.values[unit]; ok {
		return v
	}
	return math.NaN()
}

// parseResults reads what `go test -bench` printed; other lines are passed over.
func parseResults(text string) []result {
	var out []result
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		r := result{name: strings.TrimPrefix(f[0], "Benchmark"), values: map[string]float64{}}
		if i := strings.LastIndexByte(r.name, '-'); i > 0 {
			r.name = r.name[:i]
		}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				r.values[f[i+1]] = v
			}
		}
		out = append(out, r)
	}
	return out
}

// find returns the result of that name; one that is not there any more has no
// values, hence shows as missed.
func find(results []result, name string) result {
	for _, r := range results {
		if r.name == name {
			return r
		}
	}
	return result{}
}
