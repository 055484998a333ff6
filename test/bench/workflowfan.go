package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// mostAfter is how many jobs one may wait for: what more of them are gathered by is jobs in between.
const mostAfter = 64

// fanFor is how long a fan may take from its first one's end on; of a longer one the tasks count that have ended.
const fanFor = 28 * time.Second

// measureFans runs 1 → many → 1 beside as many tasks that wait for nothing, as one array and as jobs of their own, on
// three sites. The time begins with the end of the first one.
func measureFans(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "fans", siteCount, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	ends, err := followEnds(ctx, fed.Sites[0])
	if err != nil {
		return err
	}
	defer ends.leave()
	forks, err := forkLoop(ctx, shortTasks, siteCount*coresPerSite, nil)
	if err != nil {
		return err
	}
	f := &fan{home: fed.Sites[0], ends: ends, width: pick(env, 10_000, 500), alone: pick(env, shortTasks, 200)}
	for _, kind := range []struct {
		name   string
		alone  func(context.Context, *testbed.Site, int) error
		submit func(ctx context.Context, first string) (laid, error)
	}{
		{"one array", runTrue, f.array}, {fmt.Sprintf("jobs, gathered by %ds", mostAfter), runJobs, f.jobs},
	} {
		began := time.Now()
		if err := kind.alone(ctx, f.home, f.alone); err != nil {
			return fmt.Errorf("%d tasks that wait for nothing: %w", f.alone, err)
		}
		alone := float64(f.alone) / time.Since(began).Seconds()
		took, done, err := f.run(ctx, kind.submit, pick(env, fanFor, fanFor/4))
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		t.add(figure{
			name: fmt.Sprintf("fan 1 → %d → 1, %s", f.width, kind.name), unit: "tasks/s",
			measured: float64(done) / took.Seconds(), limit: alone,
			note: fmt.Sprintf("from the first one's end on: %d tasks in %s s; limit: %d such tasks that wait for nothing; "+
				"bare fork/exec %.0f/s",
				done, number(took.Seconds()), f.alone, forks),
		})
	}
	return nil
}

// fan is jobs that one has begin, and that one waits for.
type fan struct {
	home  *testbed.Site
	ends  *endings
	width int
	alone int // tasks beside it
}

// laid is a fan that was submitted.
type laid struct {
	last  string // its job that all others are before
	array string // its job of many tasks, "" = there is none
}

// run submits all behind a job that runs until it is ended, and returns how many tasks ended in which time from then.
// Within some time that may not be all; what is left of an array then is cancelled.
func (f *fan) run(ctx context.Context, submit func(context.Context, string) (laid, error), within time.Duration) (
	took time.Duration, done int, err error,
) {
	first, err := f.home.Submit(ctx, testbed.Spec{
		Command: []string{"sleep", "900"}, Sites: &testbed.Where{Only: []string{f.home.Name}},
	})
	if err != nil {
		return 0, 0, err
	}
	l, err := submit(ctx, first.ID)
	if err != nil {
		return 0, 0, err
	}
	if err = f.home.Cancel(ctx, first.ID); err != nil {
		return 0, 0, err
	}
	over := time.NewTimer(within)
	defer over.Stop()
	for began := (time.Time{}); ; {
		select {
		case end := <-f.ends.ends:
			switch {
			case end.Job == first.ID:
				began = end.at
				continue
			case began.IsZero():
				continue // of what was before
			case end.Outcome != "succeeded":
				return 0, 0, fmt.Errorf("job %s: %s", end.Job, end.Outcome)
			case end.Job == l.array:
				done += f.width
			default:
				done++
			}
			if end.Job == l.last {
				return end.at.Sub(began), done, nil
			}
		case <-over.C:
			took = time.Since(began)
			if l.array != "" {
				done, err = f.cut(ctx, l.array)
			}
			return took, done, err
		case <-f.ends.ctx.Done():
			return 0, 0, fmt.Errorf("await the end of job %s: %w", l.last, context.Cause(f.ends.ctx))
		}
	}
}

// cut returns how many tasks of an array have ended, and has the others cancelled.
func (f *fan) cut(ctx context.Context, id string) (done int, err error) {
	job, err := f.home.Job(ctx, id)
	if err == nil {
		err = f.home.Cancel(ctx, id)
	}
	for err == nil {
		var end ended
		if end, err = f.ends.next(); err == nil && end.Job == id {
			break
		}
	}
	return job.Counts["succeeded"], err
}

// array submits an array and the one that waits for it.
func (f *fan) array(ctx context.Context, first string) (l laid, err error) {
	a, err := f.home.Submit(ctx, testbed.Spec{
		Command: []string{"/bin/true"}, Count: f.width, After: []testbed.After{{Job: first, When: "any"}},
	})
	if err != nil {
		return l, err
	}
	b, err := f.home.Submit(ctx, testbed.Spec{Command: []string{"/bin/true"}, After: []testbed.After{{Job: a.ID}}})
	return laid{last: b.ID, array: a.ID}, err
}

// jobs submits jobs, and such that gather up to mostAfter of them each, and such that gather those, until one is left.
func (f *fan) jobs(ctx context.Context, first string) (l laid, err error) {
	ids := make([][]testbed.After, f.width)
	for i := range ids {
		ids[i] = []testbed.After{{Job: first, When: "any"}}
	}
	for {
		layer, err := submitAfter(ctx, f.home, ids)
		if err != nil {
			return l, err
		}
		if len(layer) == 1 {
			return laid{last: layer[0]}, nil
		}
		ids = gather(layer)
	}
}

// gather returns what the jobs of the next layer wait for.
func gather(layer []string) (next [][]testbed.After) {
	for i, id := range layer {
		if i%mostAfter == 0 {
			next = append(next, nil)
		}
		next[len(next)-1] = append(next[len(next)-1], testbed.After{Job: id})
	}
	return next
}

// submitAfter submits a job for each of those lists, a thousand in a request.
func submitAfter(ctx context.Context, s *testbed.Site, after [][]testbed.After) (ids []string, err error) {
	for len(after) > 0 {
		n := min(linesPerRequest, len(after))
		var lines bytes.Buffer
		for _, a := range after[:n] {
			lines.Write(append(mustJSON(testbed.Spec{Command: []string{"/bin/true"}, After: a}), '\n'))
		}
		got, err := submitAll(ctx, s, lines.Bytes())
		if err != nil {
			return nil, err
		}
		ids, after = append(ids, got...), after[n:]
	}
	return ids, nil
}

func runTrue(ctx context.Context, s *testbed.Site, n int) error {
	return runBag(ctx, s, n, "/bin/true")
}

// runJobs runs n tasks as jobs of their own.
func runJobs(ctx context.Context, s *testbed.Site, n int) error {
	return untilEnded(ctx, s, func() ([]string, error) { return submitAfter(ctx, s, make([][]testbed.After, n)) })
}
