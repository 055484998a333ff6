package main

import (
	"context"
	"fmt"
	"time"
)

// identityLimit bounds each package's benchmarks.
const identityLimit = 2 * time.Minute

// measureIdentity shows what keys cost: connections between members, and a roster of 1000 of them.
func measureIdentity(ctx context.Context, env environment, t *table) error {
	out, err := goBench{
		of: "node/coord/relay", pattern: "^Benchmark(Handshake|Connections)$", benchtime: "500x", limit: identityLimit,
	}.run(ctx)
	if err != nil {
		return fmt.Errorf("run the benchmarks of connections: %w\n%s", err, out)
	}
	results := parseResults(out)
	t.add(figure{
		name: "connections between members a second", measured: find(results, "Handshake").value("handshakes/s"),
		unit: "1/s", note: "mutual TLS 1.3, preamble and answer, both ends on these cores, one after the other",
	})
	t.add(figure{
		name: "memory of a connection between members", measured: find(results, "Connections").value("B/conn") / 1024,
		unit: "KiB", note: "idle, heap and stacks, both ends",
	})
	out, err = goBench{
		of: "node/coord/truststore", pattern: "^Benchmark(Update|Find)$", benchtime: "200x", limit: identityLimit,
	}.run(ctx)
	if err != nil {
		return fmt.Errorf("run the benchmarks of the roster: %w\n%s", err, out)
	}
	results = parseResults(out)
	t.add(figure{
		name: "roster of 1000 members: one changes", measured: find(results, "Update").value("ns/op") / 1e6,
		unit: "ms", note: "put in force and synced to disk",
	})
	t.add(figure{
		name: "roster of 1000 members: whose key", measured: find(results, "Find").value("ns/op"), unit: "ns",
	})
	return nil
}
