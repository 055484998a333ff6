package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// buildPairs are how often both builds start federations of their own.
const buildPairs = 5

// buildLoads are submitted to both builds in turns.
var buildLoads = []userLoad{
	{"singles, 1 client", 1, "application/json", 1, 300, 1},
	{"singles, 16 clients", 16, "application/json", 1, 1000, 1},
	{"singles, 64 clients", 64, "application/json", 1, 1600, 1},
	{"NDJSON of 1000, 1 client", 1, "application/x-ndjson", linesPerRequest, 8, 1},
	{"NDJSON of 1000, 16 clients", 16, "application/x-ndjson", linesPerRequest, 24, 1},
	{"NDJSON of 1000, 64 clients", 64, "application/x-ndjson", linesPerRequest, 64, 1},
}

// measureBuilds compares this build with the one beside: submissions, and short tasks. Both take turns, round by round,
// in five pairs of federations: what else the machine does falls on neither alone.
func measureBuilds(ctx context.Context, env environment, t *table) error {
	if env.beside == "" {
		return errors.New("compare two builds: there is only one: name the other's file with -beside")
	}
	loads := make([]*bearer, len(buildLoads))
	tasks := make([]*bearer, len(buildTasks))
	for pair := range pick(env, buildPairs, 1) {
		if err := submitInPairs(ctx, env, pair, loads); err != nil {
			return err
		}
		if err := runInPairs(ctx, env, pair, tasks); err != nil {
			return err
		}
	}
	s := sheet{
		title: "this build and the one beside: processor time of the brokers and of what they start (medians), " +
			"and what is kept (geometric means, with standard errors)",
		head: []string{"load", "ms a job", "beside", "kept of the rate", "kept by processor time"},
	}
	for i, l := range buildLoads {
		s.rows = append(s.rows, buildRow(l.name, loads[i]))
	}
	for i, b := range buildTasks {
		s.rows = append(s.rows, buildRow(b.name, tasks[i]))
	}
	t.addSheet(s)
	return nil
}

func buildRow(name string, b *bearer) []string {
	row := b.row(userLoad{name: name})
	return []string{name, row[2], row[4], row[5], row[6]}
}

// startBoth starts a federation of each build, ours first in every other pair.
func startBoth(
	ctx context.Context, env environment, name string, pair, cores int,
) (feds [2]*testbed.Federation, err error) {
	binaries := [2]string{env.binary, env.beside}
	for i := range feds {
		which := (i + pair) % len(feds)
		env.binary = binaries[which]
		feds[which], err = startWhole(ctx, env, fmt.Sprintf("%s-%d-%d", name, pair, which), siteCount, cores)
		if err != nil {
			return feds, errors.Join(err, stopBoth(feds))
		}
	}
	return feds, nil
}

func stopBoth(feds [2]*testbed.Federation) (err error) {
	for _, fed := range feds {
		if fed != nil {
			err = errors.Join(err, fed.Stop())
		}
	}
	return err
}

// submitInPairs adds the rounds of one pair of federations to sums, one for each load. The jobs may only run at a site
// whose core is taken, as in measureSubmissions.
func submitInPairs(ctx context.Context, env environment, pair int, sums []*bearer) (err error) {
	feds, err := startBoth(ctx, env, "submitted", pair, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopBoth(feds)) }()
	for _, fed := range feds {
		if _, err = occupy(ctx, fed.Sites[2], 1); err != nil {
			return err
		}
	}
	for i, l := range buildLoads {
		l.calls = pick(env, l.calls, l.clients)
		b := bearerOfBoth(feds)
		if err = b.takeTurns(ctx, l, pick(env, 6, 1)); err != nil {
			return fmt.Errorf("submit %s: %w", l.name, err)
		}
		add(&sums[i], b)
	}
	return nil
}

func bearerOfBoth(feds [2]*testbed.Federation) *bearer {
	other := &bearer{name: "the build beside", fed: feds[1], authorize: bySite(feds[1])}
	return &bearer{name: "this build", fed: feds[0], authorize: bySite(feds[0]), beside: other}
}

// add adds a pair's rounds to those of earlier pairs.
func add(sum **bearer, b *bearer) {
	if *sum != nil {
		b.continues(*sum)
	}
	*sum = b
}

// takeTurns has both builds be submitted to, round by round, every other round in the other order.
func (b *bearer) takeTurns(ctx context.Context, l userLoad, rounds int) error {
	order := []*bearer{b, b.beside}
	for _, each := range order {
		defer func() { closeLanes(each.lanes) }()
		if err := each.begin(ctx, l, l.calls); err != nil {
			return err
		}
	}
	return inRounds(rounds, order, func(each *bearer) error { return each.submit(ctx, l, l.calls) })
}

// inRounds calls do for all of them, every other round in the other order.
func inRounds(rounds int, order []*bearer, do func(*bearer) error) error {
	for range rounds {
		for _, each := range order {
			if err := do(each); err != nil {
				return err
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// buildTasks are run by both builds in turns.
var buildTasks = append(slices.Clone(bags), bag{"at other sites, in sandboxes", runAway})

// runInPairs adds the rounds of one pair of federations to sums, one for each way to run short tasks.
func runInPairs(ctx context.Context, env environment, pair int, sums []*bearer) (err error) {
	feds, err := startBoth(ctx, env, "run", pair, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopBoth(feds)) }()
	for i, way := range buildTasks {
		b := bearerOfBoth(feds)
		err = inRounds(pick(env, 2, 1), []*bearer{b, b.beside}, func(each *bearer) error { return each.run(ctx, way) })
		if err != nil {
			return fmt.Errorf("run %d tasks as %s: %w", shortTasks, way.name, err)
		}
		add(&sums[i], b)
	}
	return nil
}

// run adds a round of short tasks.
func (b *bearer) run(ctx context.Context, way bag) error {
	was, err := processorTimeOf(b.fed)
	if err != nil {
		return err
	}
	began := time.Now()
	if err = way.run(ctx, b.fed.Sites[0]); err != nil {
		return err
	}
	took := time.Since(began)
	used, err := processorTimeOf(b.fed)
	if err != nil {
		return err
	}
	b.rates = append(b.rates, shortTasks/took.Seconds())
	b.costs = append(b.costs, perTask(used.since(was).total(), shortTasks))
	return nil
}
