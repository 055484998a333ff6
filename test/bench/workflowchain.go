package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// chainRuns of the single jobs, before the chain and behind it.
	chainRuns = 50
	// chainFor is how long a chain may take; of a longer one the jobs count that have ended.
	chainFor = 12 * time.Second
	// streamPace is more than the least time between two writes of a stream of events: an end that comes sooner after
	// the one before would be told late.
	streamPace = 30 * time.Millisecond
)

// measureChains runs jobs of which each waits for the one before, at home and at another site, beside single jobs of
// the same kind before and behind it, and those beside what no job can do without.
func measureChains(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareStep(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	fed, err := startWhole(ctx, env, "chains", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	_, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	ends, err := followEnds(ctx, others[0])
	if err != nil {
		return err
	}
	defer ends.leave()
	for _, c := range []*chain{
		{name: "at home", at: others[0]}, {name: "at another site", at: others[1], away: true},
	} {
		c.from, c.bare, c.ends = others[0], bare, ends
		if err := c.measure(ctx, env, t); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// chain is one kind of it.
type chain struct {
	name     string
	from, at *testbed.Site
	away     bool
	bare     *bareStep
	ends     *endings
	single   sample // submit → ended of one job
	limit    sample // the same by bare means
}

func (c *chain) spec() testbed.Spec {
	return testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{c.at.Name}}}
}

func (c *chain) measure(ctx context.Context, env environment, t *table) error {
	length, runs := pick(env, 1000, 50), pick(env, chainRuns, chainRuns/10)
	if err := c.singles(ctx, runs); err != nil {
		return err
	}
	step, ended, err := c.run(ctx, length, pick(env, chainFor, chainFor/4))
	if err != nil {
		return err
	}
	if err := c.singles(ctx, runs); err != nil {
		return err
	}
	what := "two fsyncs + fork/exec"
	if c.away {
		what = "two raft commits + fork/exec into namespaces such as a sandbox's"
	}
	t.add(figure{
		name: "submit → ended of one job " + c.name + ", p50", measured: c.single.quantile(0.5), limit: c.limit.quantile(0.5),
		unit: "ms", note: fmt.Sprintf("limit: %s; mean %s", what, number(c.single.mean())),
	})
	t.add(figure{
		name:     fmt.Sprintf("a step of a chain of %d jobs %s", length, c.name),
		measured: float64(step) / float64(time.Millisecond), limit: c.single.quantile(0.5), unit: "ms",
		aim:  aim{maxRatio: 1.3},
		note: fmt.Sprintf("limit: p50 of submit → ended of one job, before the chain and behind it; of %d steps", ended),
	})
	return nil
}

// singles runs one job after the other, each into an idle federation, and the bare step before each.
func (c *chain) singles(ctx context.Context, runs int) error {
	for i := range warmUps + runs {
		if err := pause(ctx, streamPace); err != nil {
			return err
		}
		bare, err := c.bare.run(ctx, c.away)
		if err != nil {
			return fmt.Errorf("run the bare step: %w", err)
		}
		began := time.Now()
		a, err := c.from.Submit(ctx, c.spec())
		if err != nil {
			return err
		}
		at, err := c.ends.of(a.ID)
		if err != nil {
			return err
		}
		if i >= warmUps {
			c.limit, c.single = append(c.limit, bare), append(c.single, at.Sub(began))
		}
	}
	return nil
}

// run submits a chain in one request, and returns how long a job took of those that have ended within some time. What
// is left of it then is cancelled.
func (c *chain) run(ctx context.Context, length int, within time.Duration) (step time.Duration, ended int, err error) {
	var lines bytes.Buffer
	for i := range length {
		spec := c.spec()
		if i > 0 {
			spec.After = []testbed.After{{Job: fmt.Sprintf("#%d", i)}}
		}
		lines.Write(append(mustJSON(spec), '\n'))
	}
	began := time.Now()
	ids, err := submitAll(ctx, c.from, lines.Bytes())
	if err != nil {
		return 0, 0, err
	}
	var at time.Time
	for ended < length && (ended == 0 || at.Sub(began) < within) {
		if at, err = c.ends.of(ids[ended]); err != nil {
			return 0, 0, err
		}
		ended++
	}
	if rest := ended + 50; rest < length { // up to there some have ended already
		if err = c.from.Cancel(ctx, ids[rest]); err == nil {
			_, err = c.ends.of(ids[rest-1])
		}
	}
	return at.Sub(began) / time.Duration(ended), ended, err
}

// submitAll submits lines of which each is to be accepted, so many in a request, and returns the ids.
func submitAll(ctx context.Context, s *testbed.Site, lines []byte) (ids []string, err error) {
	answers, err := s.SubmitLines(ctx, lines)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if a.ID == "" {
			return nil, fmt.Errorf("line %d was not accepted: %s", i+1, a.Reason)
		}
		ids = append(ids, a.ID)
	}
	return ids, nil
}

// bareStep is a job by bare means, from its submission to its end.
type bareStep struct {
	file *syncedFile
	raft *coordtest.BareRaft
}

func openBareStep(env environment) (*bareStep, error) {
	raft, err := openBareRaft(env, "bare-chains")
	if err != nil {
		return nil, err
	}
	file, err := openSyncedFile(env.dir)
	if err != nil {
		return nil, errors.Join(err, raft.Close())
	}
	return &bareStep{file, raft}, nil
}

func (b *bareStep) close() error {
	b.file.close()
	return b.raft.Close()
}

// run records that a process is to begin, has it run and records its end: at home in a file, away by raft.
func (b *bareStep) run(ctx context.Context, away bool) (time.Duration, error) {
	record, began := make([]byte, entryBytes), time.Now()
	note := b.file.add
	cmd := exec.CommandContext(ctx, "/bin/true")
	if away {
		note = b.raft.Apply
		cmd.SysProcAttr = ownNamespaces()
	}
	if err := note(record); err != nil {
		return 0, err
	}
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("run /bin/true: %w", err)
	}
	err := note(record)
	return time.Since(began), err
}
