package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// warmUps of connections and supervisors.
const warmUps = 5

// latencyRuns returns enough for a 99th percentile, unless in a quick run.
func latencyRuns(env environment) int { return pick(env, 200, 20) }

// measureLatency times the way from a client's request to a running process in
// an idle federation: at home, and at another site. Nothing is subtracted: the
// time ends when the process itself reads the clock, in the bare sequence too.
func measureLatency(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareSequence(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	fed, err := startSites(ctx, env, "latency", siteCount, 1, env.shares())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	lead, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name     string
		from, to *testbed.Site
	}{
		{"home", others[0], others[0]},
		{"published by the leader", lead, others[0]},
		{"published by a follower", others[0], others[1]},
	} {
		spec := testbed.Spec{
			Command: []string{env.stamp, bare.starts.path},
			Sites:   &testbed.Where{Only: []string{c.to.Name}},
		}
		got, limit, err := timeStarts(ctx, latencyRuns(env), c.from, spec, bare, c.from != c.to)
		if err != nil {
			return fmt.Errorf("time starts, %s: %w", c.name, err)
		}
		addLatency(t, c.name, got, limit, c.from != c.to)
	}
	return nil
}

// leadAndOthers tells the broker that orders from the others.
func leadAndOthers(
	ctx context.Context, fed *testbed.Federation,
) (lead *testbed.Site, others []*testbed.Site, err error) {
	st, err := fed.Sites[0].Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range fed.Sites {
		if s.Name == st.Leader {
			lead = s
		} else {
			others = append(others, s)
		}
	}
	if lead == nil {
		return nil, nil, fmt.Errorf("no site leads: %+v", st)
	}
	return lead, others, nil
}

func addLatency(t *table, name string, got, limit sample, away bool) {
	what := "fsync + fork/exec"
	if away {
		what = "fsync + raft commit + fork/exec into namespaces such as a sandbox's"
	}
	for _, q := range []struct {
		name  string
		q     float64
		aim   aim
		peers string
	}{
		{"p50", 0.5, aim{maxRatio: 2}, "Nomad 143 to 214, Slurm 35 to 40, Kubernetes 1000"},
		{"p99", 0.99, aim{}, ""},
	} {
		t.add(figure{
			name: "submit → running, " + name + ", " + q.name, measured: got.quantile(q.q),
			limit: limit.quantile(q.q), unit: "ms", aim: q.aim, peers: q.peers, note: "limit: " + what,
		})
	}
}

// timeStarts submits one job after the other, each into an idle federation,
// and runs the bare sequence before each, so that both see the same machine.
func timeStarts(ctx context.Context, runs int, s *testbed.Site, spec testbed.Spec, bare *bareSequence,
	away bool,
) (got, limit sample, err error) {
	for i := range warmUps + runs {
		took, err := bare.run(ctx, away)
		if err != nil {
			return nil, nil, fmt.Errorf("run bare sequence: %w", err)
		}
		began := time.Now()
		a, err := s.Submit(ctx, spec)
		if err != nil {
			return nil, nil, err
		}
		st, err := bare.starts.next(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("job %s: %w", a.ID, err)
		}
		if i >= warmUps {
			limit, got = append(limit, took), append(got, since(began, st.at))
		}
		if _, err := s.AwaitJob(ctx, a.ID, "succeeded"); err != nil {
			return nil, nil, err
		}
	}
	return got, limit, nil
}

// since compares by the wall clock, the only one that two processes share.
func since(began, at time.Time) time.Duration {
	return time.Duration(at.UnixNano() - began.UnixNano())
}

// bareSequence is a start by bare means, one step after the other.
type bareSequence struct {
	stamp  string
	starts *starts
	file   *syncedFile
	raft   *coordtest.BareRaft
}

func openBareSequence(env environment) (*bareSequence, error) {
	b := &bareSequence{stamp: env.stamp}
	var err error
	if b.starts, err = listenStarts(env); err != nil {
		return nil, err
	}
	if b.file, err = openSyncedFile(env.dir); err == nil {
		b.raft, err = openBareRaft(env, "bare-latency")
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bareSequence) close() error {
	b.starts.close()
	if b.file != nil {
		b.file.close()
	}
	if b.raft != nil {
		return b.raft.Close()
	}
	return nil
}

// run syncs a record and starts a process; of a task that goes to another site, it has an entry committed, too, and the
// process begins in namespaces of its own.
func (b *bareSequence) run(ctx context.Context, away bool) (time.Duration, error) {
	record := make([]byte, entryBytes)
	began := time.Now()
	if err := b.file.add(record); err != nil {
		return 0, err
	}
	if away {
		if err := b.raft.Apply(record); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, b.stamp, b.starts.path)
	if away {
		cmd.SysProcAttr = ownNamespaces()
	}
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("run stamp: %w", err)
	}
	st, err := b.starts.next(ctx)
	return since(began, st.at), err
}
