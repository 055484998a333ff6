package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// idleFor a broker has nothing to do before it is looked at.
const idleFor = 5 * time.Second

// memoryPlan is what the federation goes through.
type memoryPlan struct {
	bags    int // of shortTasks jobs each, which run
	waiting int // more jobs, which wait and are then cancelled
}

// measureMemory looks at the brokers' resident memory, idle with nothing in the
// state, idle after some jobs, and after many: those that ran are the smaller
// part, for to run 100,000 takes minutes; the state keeps the cancelled ones
// just as long.
func measureMemory(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "memory", siteCount, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	return pick(env, memoryPlan{3, 97_000}, memoryPlan{1, 2000}).run(ctx, t, fed)
}

func (plan memoryPlan) run(ctx context.Context, t *table, fed *testbed.Federation) error {
	ran := plan.bags * shortTasks
	if err := addMemory(ctx, t, fed, "idle, empty", "Nomad 121 MB, Kubernetes 260, Slurm 12", ""); err != nil {
		return err
	}
	for range plan.bags {
		if err := runSeparate(ctx, fed.Sites[0]); err != nil {
			return err
		}
	}
	if err := addMemory(ctx, t, fed, fmt.Sprintf("idle, after %d jobs", ran), "Nomad 312 to 509 MB, Kubernetes 690", ""); err != nil {
		return err
	}
	ids, err := submitWaiting(ctx, fed.Sites[0], plan.waiting)
	if err != nil {
		return err
	}
	if err := addMemory(ctx, t, fed, fmt.Sprintf("idle, %d jobs wait", plan.waiting), "", ""); err != nil {
		return err
	}
	if err := cancelAll(ctx, fed.Sites[0], ids); err != nil {
		return err
	}
	return addMemory(ctx, t, fed, fmt.Sprintf("idle, after %d jobs", ran+plan.waiting),
		"Nomad 312 to 509 MB after 3000", fmt.Sprintf("%d ran, the others were cancelled", ran))
}

// waitingSpec is a job that no site may run.
var waitingSpec = testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{nowhere}}}

// submitWaiting submits so many jobs that wait, and returns their ids.
func submitWaiting(ctx context.Context, s *testbed.Site, n int) ([]string, error) {
	ids := make([]string, 0, n)
	for len(ids) < n {
		answers, err := s.SubmitLines(ctx, bytes.Repeat(append(mustJSON(waitingSpec), '\n'),
			min(linesPerRequest, n-len(ids))))
		if err != nil {
			return nil, fmt.Errorf("submit waiting jobs: %w", err)
		}
		for _, a := range answers {
			if a.ID == "" {
				return nil, fmt.Errorf("submit waiting jobs: line %d was not accepted", len(ids))
			}
			ids = append(ids, a.ID)
		}
	}
	return ids, nil
}

// cancelAll cancels jobs, as many at a time as the most clients of the figures.
func cancelAll(ctx context.Context, s *testbed.Site, ids []string) error {
	var next atomic.Int64
	_, err := countTo(ctx, 64, len(ids), func(int) (int, error) { return 1, s.Cancel(ctx, ids[next.Add(1)-1]) })
	return err
}

// addMemory adds the largest of the brokers, once they are at rest.
func addMemory(ctx context.Context, t *table, fed *testbed.Federation, when, peers, note string) error {
	if err := pause(ctx, idleFor); err != nil {
		return err
	}
	most, sum := 0.0, 0.0
	for _, s := range fed.Sites {
		mib, err := s.ResidentMiB()
		if err != nil {
			return err
		}
		most, sum = max(most, mib), sum+mib
	}
	of := fmt.Sprintf("largest of %d, mean %.0f", len(fed.Sites), sum/float64(len(fed.Sites)))
	if note != "" {
		of += "; " + note
	}
	t.add(figure{name: "memory of a broker (RSS), " + when, measured: most, unit: "MiB", peers: peers, note: of})
	return nil
}
