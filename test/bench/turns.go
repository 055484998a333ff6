package main

import (
	"context"
	"fmt"
	"time"
)

// turnsLimit bounds the benchmarks of quotas.
const turnsLimit = time.Minute

// measureTurns shows what a site with a million waiting tasks of 1000 users decides, and in which time.
func measureTurns(ctx context.Context, env environment, t *table) error {
	out, err := goBench{
		of: "node/core/quotas", pattern: "^Benchmark(Publish|Admit)AmongAMillion$", benchtime: pick(env, "300000x", "20000x"), limit: turnsLimit,
	}.run(ctx)
	if err != nil {
		return fmt.Errorf("run the benchmarks of quotas: %w\n%s", err, out)
	}
	results := parseResults(out)
	for _, f := range []struct{ name, result, note string }{
		{"a million held jobs of 1000 users: which is published next", "PublishAmongAMillion", "the decision, the count of one that ended, and of one that comes"},
		{"a million open jobs of 1000 users: one is submitted", "AdmitAmongAMillion", "the check of its user's quota, and a look at one job in turn"},
	} {
		t.add(figure{name: f.name, measured: find(results, f.result).value("ns/op") / 1000, unit: "µs", note: f.note})
	}
	return nil
}
