package main

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stateBenchmarks are those of package fsm that answer for its figures: the
// smallest and the largest federation, and a fixed number of operations, since
// each of Go's usual trial runs would fill a queue of a million first.
var stateBenchmarks = []struct{ pattern, benchtime string }{
	{"^Benchmark(Submit|Turnover|Match)$/^sites=(10|1000)$", "5000x"},
	{"^BenchmarkSnapshot$", "3x"},
}

// stateLimit bounds each of them.
const stateLimit = 100 * time.Second

// runStateBenchmarks includes the lines of package fsm's own benchmarks: ns and
// allocations per submit, match and completion, snapshot, restore and hash.
func runStateBenchmarks(ctx context.Context, _ environment, t *table) error {
	for _, b := range stateBenchmarks {
		out, err := goBenchmark(ctx, b.pattern, b.benchtime)
		lines := benchmarkLines(out)
		for _, line := range lines {
			t.addLine(line)
		}
		if err != nil {
			return fmt.Errorf("run benchmarks %s of fsm: %w\n%s", b.pattern, err, out)
		}
		if len(lines) == 0 {
			return fmt.Errorf("fsm has no benchmarks %s:\n%s", b.pattern, out)
		}
	}
	addAssignments(t)
	return nil
}

// addAssignments turns the largest case's matching into the figures with an
// aim: assignments a second, and growth beside that of the input. A benchmark
// that is not there any more shows as NaN, hence as missed.
func addAssignments(t *table) {
	ns := func(sites int, waiting string) float64 {
		return nsPerOp(t.lines, fmt.Sprintf("BenchmarkMatch/sites=%d/waiting=%s/jobs/batch=1024", sites, waiting))
	}
	most := ns(1000, "1000000")
	t.add(figure{
		name: "assignments, 1000 sites, 1e6 jobs, batches of 1024", measured: 1e9 / most,
		unit: "/s", aim: aim{atLeast: 100_000},
	})
	for _, g := range []struct {
		name  string
		from  float64
		times float64
	}{
		{"10 → 1000 sites", ns(10, "1000000"), 100},
		{"1e3 → 1e6 jobs", ns(1000, "1000"), 1000},
	} {
		t.add(figure{
			name: "growth of an assignment, " + g.name, measured: most / g.from, unit: "×",
			limit: g.times, aim: aim{maxRatio: 0.1}, note: "limit: growth of the input; the time of one is to grow far less",
		})
	}
}

// nsPerOp finds a benchmark's line by its name without the number of cores.
func nsPerOp(lines []string, name string) float64 {
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "ns/op" || f[0][:max(0, strings.LastIndexByte(f[0], '-'))] != name {
			continue
		}
		if v, err := strconv.ParseFloat(f[2], 64); err == nil {
			return v
		}
	}
	return math.NaN()
}

func goBenchmark(ctx context.Context, pattern, benchtime string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stateLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem",
		"-benchtime", benchtime, "github.com/cloudshare/cloudshare/fsm")
	// The test binary is a child of `go test`: both end at the limit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func benchmarkLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Benchmark") {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}
