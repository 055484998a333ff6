package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	shortTasks   = 1000
	coresPerSite = 2
)

// bag is one way to run shortTasks tasks.
type bag struct {
	name string
	run  func(context.Context, *testbed.Site) error
}

var bags = []bag{{"one array", runArray}, {"separate jobs", runSeparate}}

// measureThroughput runs 1000 × /bin/true through three sites, as one array
// and as separate jobs, beside a bare loop with as many processes at once, and
// beside that loop with the commits that the federation made.
func measureThroughput(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareRaft(env, "bare-throughput")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	fed, err := startSites(ctx, env, "throughput", siteCount, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for _, b := range bags {
		if cause := b.measure(ctx, env, t, fed, bare); cause != nil {
			err = errors.Join(err, fmt.Errorf("run %d tasks as %s: %w", shortTasks, b.name, cause))
		}
	}
	if cause := measureForeign(ctx, t, fed); cause != nil {
		err = errors.Join(err, fmt.Errorf("run %d tasks at other sites: %w", shortTasks, cause))
	}
	return err
}

func (b bag) measure(ctx context.Context, env environment, t *table, fed *testbed.Federation,
	bare *coordtest.BareRaft,
) error {
	const together = siteCount * coresPerSite
	own := ownProcessorTime()
	forks, err := forkLoop(ctx, shortTasks, together, nil)
	if err != nil {
		return err
	}
	forksCPU := ownProcessorTime() - own
	was, err := expenseOf(ctx, fed)
	if err != nil {
		return err
	}
	began := time.Now()
	if err = b.run(ctx, fed.Sites[0]); err != nil {
		return err
	}
	rate := shortTasks / time.Since(began).Seconds()
	spent, err := expenseOf(ctx, fed)
	if err != nil {
		return err
	}
	spent = spent.since(was)
	own = ownProcessorTime()
	least, cause := leastFor(ctx, env, bare, spent) // on busy cores bare raft may lose its leader: the rest stays
	leastCPU := ownProcessorTime() - own
	t.add(figure{
		name: fmt.Sprintf("%d × /bin/true, %s", shortTasks, b.name), unit: "tasks/s", measured: rate, limit: forks,
		aim: aim{minRatio: 0.5}, peers: "Nomad 24 to 26, Slurm 26 to 56, Kubernetes 38 to 46 (of 500)",
		note: fmt.Sprintf("limit: bare fork/exec, %d at once", together),
	})
	made := fmt.Sprintf("limit: bare fork/exec beside bare raft of its %d entries and its %d synced records", spent.entries, spent.syncs)
	if cause == nil {
		t.add(figure{name: "  and its commits", unit: "tasks/s", measured: rate, limit: least, note: made})
	}
	addCPU(t, b.name, spent.processorTime, forksCPU, shortTasks)
	if cause == nil {
		t.add(figure{
			name: "  and its commits", unit: "ms", measured: perTask(spent.total(), shortTasks), limit: perTask(leastCPU, shortTasks),
			note: made,
		})
	}
	return cause
}

// leastFor runs what the tasks cannot do without: as many bare processes, beside
// them as many entries by bare raft, one after the other, and at each site its
// share of the synced records. It returns tasks a second.
func leastFor(ctx context.Context, env environment, bare *coordtest.BareRaft, spent expense) (float64, error) {
	var wg sync.WaitGroup
	errs := make([]error, 2+siteCount)
	began := time.Now()
	wg.Go(func() { _, errs[0] = forkLoop(ctx, shortTasks, siteCount*coresPerSite, nil) })
	wg.Go(func() {
		errs[1] = repeat(ctx, spent.entries, func() error { return bare.Apply(make([]byte, entryBytes)) })
	})
	for i := range siteCount {
		wg.Go(func() { errs[2+i] = syncRecords(ctx, env, spent.syncs/siteCount) })
	}
	wg.Wait()
	return shortTasks / time.Since(began).Seconds(), errors.Join(errs...)
}

// syncRecords returns a bare journal of n records.
func syncRecords(ctx context.Context, env environment, n int) error {
	dir, err := os.MkdirTemp(env.dir, "bare-records-")
	if err != nil {
		return fmt.Errorf("make folder of a bare journal: %w", err)
	}
	f, err := openSyncedFile(dir)
	if err != nil {
		return err
	}
	defer f.close()
	return repeat(ctx, n, func() error { return f.add(make([]byte, entryBytes)) })
}

func repeat(ctx context.Context, n int, do func() error) error {
	for range n {
		if err := errors.Join(ctx.Err(), do()); err != nil {
			return err
		}
	}
	return nil
}

func runArray(ctx context.Context, s *testbed.Site) error {
	return runBag(ctx, s, shortTasks, "/bin/true")
}

// runBag runs n tasks of one job.
func runBag(ctx context.Context, s *testbed.Site, n int, command ...string) error {
	return untilEnded(ctx, s, func() ([]string, error) {
		a, err := s.Submit(ctx, testbed.Spec{Command: command, Count: n})
		return []string{a.ID}, err
	})
}

func runSeparate(ctx context.Context, s *testbed.Site) error {
	lines := bytes.Repeat(append(mustJSON(testbed.Spec{Command: []string{"/bin/true"}}), '\n'), shortTasks)
	return untilEnded(ctx, s, func() (ids []string, err error) {
		answers, err := s.SubmitLines(ctx, lines)
		for _, a := range answers {
			if a.ID != "" {
				ids = append(ids, a.ID)
			}
		}
		if err != nil || len(ids) != shortTasks {
			err = fmt.Errorf("submit: %d of %d accepted: %w", len(ids), shortTasks, err)
		}
		return ids, err
	})
}
