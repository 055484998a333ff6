package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// heldKinds are what may be held: jobs that wait for others, which their owner's journal has, and tasks of a gated job,
// which the federation's state has.
var heldKinds = []struct {
	name   string
	submit func(ctx context.Context, s *testbed.Site, n int) (h heldJobs, err error)
	starts int // of their broker
}{
	{"tasks of a gated job", holdTasks, 1}, {"jobs that wait for two others each", holdGraph, mostStarts},
}

// heldJobs is what was submitted.
type heldJobs struct {
	first string // to cancel it ends all
	last  string
	bytes int // of what was sent, a node
	took  time.Duration
}

// startsFor is for how long a broker is started again and again, once at least.
const startsFor = 4 * time.Second

// mostStarts of a broker in that time.
const mostStarts = 3

// restFor a broker is left alone before it is looked at.
const restFor = 2 * time.Second

// brokerState is what a broker takes.
type brokerState struct {
	resident, heap float64 // MiB
	start          float64 // ms until it is ready
	cpu            float64 // ms of a core until then
	starts         int
}

// measureHeld looks at what 100,000 held nodes cost their owner's broker: memory, and its start after a kill, beside
// the same broker with none.
func measureHeld(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "held", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	_, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	s, nodes := others[0], pick(env, 100_000, 2000)
	none, err := lookAtBroker(ctx, s)
	if err == nil {
		err = none.restart(ctx, fed, s, pick(env, mostStarts, 1))
	}
	if err != nil {
		return err
	}
	for _, kind := range heldKinds {
		h, err := kind.submit(ctx, s, nodes)
		if err != nil {
			return fmt.Errorf("hold %s: %w", kind.name, err)
		}
		if err = awaitHeld(ctx, s, h.last); err != nil {
			return err
		}
		got, err := lookAtBroker(ctx, s)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d held %s", nodes, kind.name)
		addHeld(t, name, nodes, none, got, h)
		if err := got.restart(ctx, fed, s, pick(env, kind.starts, 1)); err != nil {
			return err
		}
		addStart(t, name, none, got)
		if err := s.Cancel(ctx, h.first); err != nil {
			return err
		}
	}
	return nil
}

func addHeld(t *table, name string, nodes int, none, got brokerState, h heldJobs) {
	node := func(mib float64) float64 { return mib * (1 << 20) / float64(nodes) }
	t.add(figure{
		name: name + ": memory of their broker (RSS)", measured: got.resident, limit: none.resident, unit: "MiB",
		note: fmt.Sprintf("limit: with none; accepted within %s s", number(h.took.Seconds())),
	})
	t.add(figure{
		name: name + ": heap, a node", measured: node(got.heap - none.heap), limit: float64(h.bytes), unit: "B",
		note: fmt.Sprintf("limit: its text as it was sent; the heap is %s MiB, %s with none", number(got.heap), number(none.heap)),
	})
}

func addStart(t *table, name string, none, got brokerState) {
	t.add(figure{
		name: name + ": start → ready after kill -9", measured: got.start, limit: none.start, unit: "ms",
		note: fmt.Sprintf("limit: with none; median of %d; %s and %s ms of a core", got.starts, number(got.cpu), number(none.cpu)),
	})
}

// lookAtBroker looks at a broker at rest.
func lookAtBroker(ctx context.Context, s *testbed.Site) (b brokerState, err error) {
	if err = pause(ctx, restFor); err != nil {
		return b, err
	}
	if b.resident, err = s.ResidentMiB(); err != nil {
		return b, err
	}
	b.heap, err = heapMiB(ctx, s)
	return b, err
}

// restart has the broker killed and started, so many times but for a while only.
func (b *brokerState) restart(ctx context.Context, fed *testbed.Federation, s *testbed.Site, most int) error {
	var starts, cpu []float64
	for began := time.Now(); len(starts) == 0 || len(starts) < most && time.Since(began) < startsFor; {
		took, used, err := restart(ctx, fed, s)
		if err != nil {
			return err
		}
		starts = append(starts, float64(took)/float64(time.Millisecond))
		cpu = append(cpu, float64(used)/float64(time.Millisecond))
	}
	b.start, b.cpu, b.starts = median(starts), median(cpu), len(starts)
	return nil
}

// restart kills a broker, and returns how long after its start it is ready, and what it has used of the cores by then.
func restart(ctx context.Context, fed *testbed.Federation, s *testbed.Site) (took, used time.Duration, err error) {
	if err = s.Kill(); err != nil {
		return 0, 0, err
	}
	started := make(chan error, 1)
	began := time.Now()
	go func() { started <- fed.Restart(ctx, s) }()
	for s.Ready(ctx) != nil {
		if err = pause(ctx, 5*time.Millisecond); err != nil {
			return 0, 0, errors.Join(fmt.Errorf("await %s: %w", s.Name, err), <-started)
		}
	}
	took = time.Since(began)
	used, err = timeOf(s)
	return took, used, errors.Join(err, <-started)
}

// holdTasks submits a job none of whose tasks but one is released, and that one waits for a site that is not there.
func holdTasks(ctx context.Context, s *testbed.Site, n int) (h heldJobs, err error) {
	spec := waitingSpec
	spec.Count, spec.Parallel = n, 1
	began := time.Now()
	a, err := s.Submit(ctx, spec)
	return heldJobs{first: a.ID, last: a.ID, bytes: len(mustJSON(spec)), took: time.Since(began)}, err
}

// holdGraph submits jobs each of which waits for the two before, and the first for one that waits for a site that is
// not there. To cancel that one ends all.
func holdGraph(ctx context.Context, s *testbed.Site, n int) (h heldJobs, err error) {
	first, err := s.Submit(ctx, waitingSpec)
	if err != nil {
		return h, err
	}
	h.first = first.ID
	before := []string{first.ID}
	for done, began := 0, time.Now(); done < n; h.took = time.Since(began) {
		lines := graphLines(before, min(linesPerRequest, n-done))
		ids, err := submitAll(ctx, s, lines)
		if err != nil {
			return h, err
		}
		done += len(ids)
		before, h.last, h.bytes = ids[len(ids)-2:], ids[len(ids)-1], len(lines)/len(ids)
	}
	return h, nil
}

// graphLines returns so many jobs behind the last two.
func graphLines(before []string, n int) (lines []byte) {
	for i := range n {
		spec := testbed.Spec{Command: []string{"/bin/true"}, Name: fmt.Sprintf("step-%d", i)}
		for back := 1; back <= 2; back++ {
			switch at := i - back; {
			case at >= 0:
				spec.After = append(spec.After, testbed.After{Job: fmt.Sprintf("#%d", at+1)})
			case len(before)+at >= 0:
				spec.After = append(spec.After, testbed.After{Job: before[len(before)+at]})
			}
		}
		lines = append(append(lines, mustJSON(spec)...), '\n')
	}
	return lines
}

// awaitHeld waits until a job has held tasks.
func awaitHeld(ctx context.Context, s *testbed.Site, id string) error {
	return testbed.Await(ctx, "held tasks of job "+id, func() error {
		job, err := s.Job(ctx, id)
		if err == nil && job.Counts["held"] == 0 {
			err = fmt.Errorf("its tasks are %v: %s", job.Counts, job.Reason)
		}
		return err
	})
}
