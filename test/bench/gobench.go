package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// stateLimit bounds the state machine's benchmarks.
const stateLimit = 150 * time.Second

// runStateBenchmarks includes the lines of package fsm's own benchmarks: ns and
// allocations per submit, match and completion, snapshot, restore and hash.
func runStateBenchmarks(ctx context.Context, _ environment, t *table) error {
	ctx, cancel := context.WithTimeout(ctx, stateLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchmem",
		"-benchtime", "300ms", "github.com/cloudshare/cloudshare/fsm").CombinedOutput()
	lines := benchmarkLines(string(out))
	for _, line := range lines {
		t.addLine(line)
	}
	if err != nil {
		return fmt.Errorf("run benchmarks of fsm: %w\n%s", err, out)
	}
	if len(lines) == 0 {
		return fmt.Errorf("fsm has no benchmarks:\n%s", out)
	}
	return nil
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
