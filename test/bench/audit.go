package main

import (
	"context"
	"fmt"
	"time"
)

// auditLimit bounds going through a history again and again.
const auditLimit = 2 * time.Minute

// leastVerified is which part of what a core can verify at all it has to verify while it executes the entries, too.
const leastVerified = 0.7

// measureAudit shows how fast `cloudshare audit verify` goes through bundles of one command each, on one core, in turns
// with bare ed25519.Verify of the same signatures.
func measureAudit(ctx context.Context, env environment, t *table) error {
	out, err := goBench{
		of: "node/history/replay", pattern: "^BenchmarkVerify$", benchtime: pick(env, "10x", "2x"), limit: auditLimit,
	}.run(ctx)
	if err != nil {
		return fmt.Errorf("run the benchmark of audit verify: %w\n%s", err, out)
	}
	r := find(parseResults(out), "Verify")
	t.add(figure{
		name: "audit verify: bundles of one command, one core", measured: r.value("bundles/s"), limit: r.value("bare/s"),
		unit: "1/s", aim: aim{minRatio: leastVerified}, note: "in processor time; limit: ed25519.Verify of the same signatures",
	})
	return nil
}
