package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// farTasks of an array.
func farTasks(env environment) int { return pick(env, 500, 60) }

// measureFarStarts times the way from a follower's request to a process at another site.
func measureFarStarts(ctx context.Context, env environment, t *table) error {
	return atEachLayout(ctx, env, t, func(ctx context.Context, sc *scene) error {
		if err := sc.starts(ctx, "published → running, p50", sc.executor); err != nil || sc.far == nil {
			return err
		}
		return sc.starts(ctx, "published → running at the far site, p50", sc.far)
	})
}

func (sc *scene) starts(ctx context.Context, row string, executor *testbed.Site) error {
	marks, err := listenStarts(sc.env)
	if err != nil {
		return err
	}
	defer marks.close()
	spec := testbed.Spec{
		Command: []string{sc.env.stamp, marks.path}, Sites: &testbed.Where{Only: []string{executor.Name}},
	}
	var took sample
	for range pick(sc.env, 15, 3) {
		began := time.Now()
		a, err := sc.follower.Submit(ctx, spec)
		if err != nil {
			return err
		}
		st, err := marks.next(ctx)
		if err != nil || st.job != a.ID {
			return fmt.Errorf("job %s: started %+v: %w", a.ID, st, err)
		}
		took = append(took, since(began, st.at))
		if _, err := sc.follower.AwaitJob(ctx, a.ID, "succeeded"); err != nil {
			return err
		}
	}
	sc.add(row, figure{measured: took.quantile(0.5), limit: ms(sc.started(sc.follower, executor)), unit: "ms"})
	return nil
}

// farWarmUp is an array that each layout runs before the one that is timed: sites ask for tasks ahead once they have
// measured for a while that they are far, and those measurements are still of the layout before.
func farWarmUp(env environment) int { return pick(env, 300, 20) }

// measureFarArrays runs many short tasks on all cores, beside what sites without distance did.
func measureFarArrays(ctx context.Context, env environment, t *table) error {
	var near float64 // at the first layout, which has no distances
	return atEachLayout(ctx, env, t, func(ctx context.Context, sc *scene) error {
		if err := runBag(ctx, sc.follower, farWarmUp(env), "/bin/true"); err != nil {
			return err
		}
		began := time.Now()
		if err := runBag(ctx, sc.follower, farTasks(env), "/bin/true"); err != nil {
			return err
		}
		rate := float64(farTasks(env)) / time.Since(began).Seconds()
		f := figure{measured: rate, limit: near, unit: "tasks/s", aim: aim{minRatio: 0.6}}
		f.note = fmt.Sprintf("%d tasks on %d cores; limit: at 0 ms", farTasks(env), farCores*farCount(env))
		if near == 0 {
			near = rate
		}
		sc.add("array of /bin/true", f)
		return nil
	})
}
