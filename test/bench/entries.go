package main

import (
	"context"
	"fmt"
	"time"
)

// entriesLimit bounds the section: two million tasks run in it.
const entriesLimit = 4 * time.Minute

// longWork says what each benchmark of fsm.BenchmarkEntries does.
var longWork = []struct{ name, what string }{
	{"decline", "a site declines 10,000 tasks of an array"},
	{"offers", "25 offers assign 2 million tasks"},
	{"lost", "their 25 sites are lost"},
	{"leave", "a site with 80,000 tasks leaves"},
	{"register", "it registers and holds none of them"},
	{"cancel", "an array of a million live tasks is cancelled"},
	{"departure", "a site is forgotten, a million jobs of it wait"},
	{"reservations", "holds for 256 requirements among 100,000 machines"},
	{"fresh", "256 new requirements that none of 100,000 machines fits"},
	{"barred", "one more job of a class with a declined one, 100,000 machines"},
	{"retired", "a job leaves, 4 million ranges of numbers have"},
	{"outlived", "800,000 tasks outlive their estimates (ALONE)"},
	{"switch", "the policy becomes ALONE, a million jobs wait"},
	{"apart", "25,000 tasks end between 480,000 that ended apart"},
	{"records", "10,000 tasks end, the last one first, and leave records"},
	{"returns", "80,000 jobs return between 80,000 others"},
	{"priorities", "an offer for 100,000 jobs, each of a priority of its own"},
	{"sites", "4000 lost sites register again"},
	{"selectors", "250 requirements by 16 selectors, 1000 machines with labels of their own"},
	{"declined", "4000 jobs are declined that 100 sites have declined"},
	{"starving", "holds for 100,000 requirements of 1000 sites"},
}

// entryAim is how long one entry may take: a lease on a LAN is 6 s, a tick 1 s.
const entryAim = 50 // ms

// measureEntries shows how long the longest entry is of what may not be done in one,
// and into how many it is put.
func measureEntries(ctx context.Context, env environment, t *table) error {
	out, err := goBench{of: "fsm", pattern: "^BenchmarkEntries$", benchtime: "1x", limit: entriesLimit, short: env.quick}.run(ctx)
	if err != nil {
		return fmt.Errorf("run the benchmarks of long entries: %w\n%s", err, out)
	}
	results := parseResults(out)
	for _, w := range longWork {
		r := find(results, "Entries/"+w.name)
		note := fmt.Sprintf("%.0f entries, %.0f ms in all, at most %.0f steps, %.0f ms of processor time", r.value("entries"), r.value("total-ms"), r.value("steps"), r.value("worst-cpu-ms"))
		t.add(figure{
			name: "longest entry: " + w.what, measured: r.value("worst-ms"), unit: "ms", aim: aim{below: entryAim}, note: note,
		})
	}
	return nil
}
