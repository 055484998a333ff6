package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// virtualBenchmarks of package sched: what virtual queues cost.
const virtualBenchmarks = "^Benchmark(Arrival|Completion|Shares|Rank)$"

// measurePolicies compares what Apply gets through under the policies by
// projected waits with SIMPL_DIRECT, and shows what their virtual queues cost.
func measurePolicies(ctx context.Context, env environment, t *table) error {
	out, err := goBench{of: "sched", pattern: virtualBenchmarks, benchtime: pick(env, "2000x", "20x"), limit: stateLimit}.run(ctx)
	if err != nil {
		return fmt.Errorf("run benchmarks of sched: %w\n%s", err, out)
	}
	t.addSheet(virtualSheet(parseResults(out)))
	pattern := pick(env, "^BenchmarkPolicies$/^sites=(5|12|100)$/./^batch=(64|1024)$", "^BenchmarkPolicies$/^sites=100$/./^batch=1024$")
	best := map[string]float64{}
	for range pick(env, 3, 1) { // the best of three: what else runs takes turns
		out, err = goBench{of: "fsm", pattern: pattern, benchtime: pick(env, "32768x", "2048x"), limit: stateLimit}.run(ctx)
		if err != nil {
			return fmt.Errorf("run benchmarks of fsm: %w\n%s", err, out)
		}
		for _, r := range parseResults(out) {
			if ns := r.value("median-ns/op"); best[r.name] == 0 || ns < best[r.name] {
				best[r.name] = ns
			}
		}
	}
	addThroughputs(t, best)
	return nil
}

// addThroughputs has a line for each policy but SIMPL_DIRECT, whose throughput is
// the limit. One operation is a submission, a completion and an assignment.
func addThroughputs(t *table, best map[string]float64) {
	const simpl = "policy=SIMPL_DIRECT"
	var names []string
	for name := range best {
		if !strings.Contains(name, simpl) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		var sites, batch int
		var policy string
		_, err := fmt.Sscanf(strings.ReplaceAll(name, "/", " "), "Policies sites=%d policy=%s batch=%d", &sites, &policy, &batch)
		bare := best[fmt.Sprintf("Policies/sites=%d/%s/batch=%d", sites, simpl, batch)]
		f := figure{
			name: fmt.Sprintf("Apply under %s, %d sites, %d in an entry", policy, sites, batch), unit: "ops/s",
			measured: 1e9 / best[name], limit: 1e9 / bare, note: "submission, completion, assignment; limit: SIMPL_DIRECT",
		}
		if err != nil || bare == 0 {
			f.measured = math.NaN()
		}
		if sites == 100 {
			f.aim = aim{minRatio: 0.8}
		}
		t.add(f)
	}
}

// virtualSheet has the costs by policy and sites.
func virtualSheet(all []result) sheet {
	s := sheet{title: "virtual queues: ns of one entry with …, and of a decision; bytes of all queues"}
	s.head = []string{"policy", "sites", "an arrival of 100 tasks", "a completion", "all fair shares after it", "a decision", "bytes"}
	for _, r := range all {
		place, ok := strings.CutPrefix(r.name, "Arrival/")
		if !ok {
			continue
		}
		policy, sites, _ := strings.Cut(place, "/")
		row := []string{strings.TrimPrefix(policy, "policy="), strings.TrimPrefix(sites, "sites=")}
		for _, op := range []string{"Arrival", "Completion", "Shares", "Rank"} {
			row = append(row, fmt.Sprintf("%.0f", find(all, op+"/"+place).value("ns/op")))
		}
		s.rows = append(s.rows, append(row, fmt.Sprintf("%.0f", find(all, "Shares/"+place).value("B/queues"))))
	}
	return s
}
