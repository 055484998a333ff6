package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// sandboxLimit bounds the benchmarks of sandboxes.
const sandboxLimit = 3 * time.Minute

// measureSandboxes shows what a task in a sandbox costs beside a fork and exec into the same
// namespaces and beside bubblewrap, and what memory a supervisor that waits takes.
func measureSandboxes(ctx context.Context, env environment, t *table) error {
	out, err := goBench{
		of: "executor/local", pattern: "^Benchmark(Sandbox|Supervisor)$", benchtime: pick(env, "100x", "10x"), limit: sandboxLimit,
		environ: []string{"CLOUDSHARE_BINARY=" + env.binary},
	}.run(ctx)
	if err != nil {
		return fmt.Errorf("run the benchmarks of sandboxes: %w\n%s", err, out)
	}
	results := parseResults(out)
	limit := find(results, "Sandbox/namespaces")
	for _, f := range []struct{ name, of, note string }{
		{"a task in its owner's sandbox", "same-owner", "/bin/true, start to end; the limit: fork and exec into the same namespaces"},
		{"a task of a new owner", "new-owner", "a sandbox is made, unless one is warm"},
		{"the same in bubblewrap", "bubblewrap", bubblewrapNote()},
	} {
		for _, quantile := range []string{"p50", "p99"} {
			t.add(figure{
				name: f.name + ", " + quantile, measured: find(results, "Sandbox/"+f.of).value(quantile+"-µs") / 1e3,
				limit: limit.value(quantile+"-µs") / 1e3, unit: "ms", note: f.note,
			})
		}
	}
	for _, kind := range []string{"plain", "contained"} {
		const note = "resident; %.1f MiB its share (PSS; 0 = only root may read it), %.1f MiB its own"
		of := find(results, "Supervisor/"+kind)
		t.add(figure{
			name: "memory of an idle supervisor, " + kind, measured: of.value("rss-KiB") / 1024, unit: "MiB",
			note: fmt.Sprintf(note, of.value("pss-KiB")/1024, of.value("own-KiB")/1024),
		})
	}
	return nil
}

// bubblewrapNote says whether bubblewrap is measured.
func bubblewrapNote() string {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return "NOT MEASURED: install it (apt-get install bubblewrap)"
	}
	return "its root is like a sandbox's, and made for each task"
}
