package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// latencyRuns per figure: enough for a 99th percentile.
const latencyRuns = 200

// measureLatency times the way from a client's request to a running process in
// an idle federation: at home, and at another site. Nothing is subtracted: the
// time ends when the process itself reads the clock, in the bare sequence too.
func measureLatency(ctx context.Context, env environment, t *table) (err error) {
	st, err := listenStarts(env.dir)
	if err != nil {
		return err
	}
	defer st.close()
	home, published, err := bareSequence(ctx, env, st, latencyRuns)
	if err != nil {
		return fmt.Errorf("measure bare sequence: %w", err)
	}
	fed, err := startSites(ctx, env, "latency", 1)
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
		bare     sample
	}{
		{"home", others[0], others[0], home},
		{"published by the lead", lead, others[0], published},
		{"published by a follower", others[0], others[1], published},
	} {
		spec := testbed.Spec{Command: []string{env.stamp, st.path}, Sites: &testbed.Where{Only: []string{c.to.Name}}}
		got, err := timeStarts(ctx, c.from, spec, st)
		if err != nil {
			return fmt.Errorf("time starts, %s: %w", c.name, err)
		}
		addLatency(t, c.name, got, c.bare)
	}
	return nil
}

// leadAndOthers tells the broker that orders from the others.
func leadAndOthers(ctx context.Context, fed *testbed.Federation) (lead *testbed.Site, others []*testbed.Site, err error) {
	st, err := fed.Sites[0].Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range fed.Sites {
		if s.Name == st.Lead {
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

func addLatency(t *table, name string, got, bare sample) {
	what := "fsync + fork/exec"
	if name != "home" {
		what = "fsync + raft commit + fork/exec"
	}
	for _, q := range []struct {
		name string
		q    float64
		aim  aim
	}{{"p50", 0.5, aim{maxRatio: 2}}, {"p99", 0.99, aim{}}} {
		t.add(figure{
			name: "submit → running, " + name + ", " + q.name, measured: got.quantile(q.q),
			limit: bare.quantile(q.q), unit: "ms", aim: q.aim, note: "limit: " + what,
		})
	}
}

// timeStarts submits one job after the other, each into an idle federation.
func timeStarts(ctx context.Context, s *testbed.Site, spec testbed.Spec, st *starts) (sample, error) {
	var got sample
	for i := range latencyRuns + 5 {
		began := time.Now()
		a, err := s.Submit(ctx, spec)
		if err != nil {
			return nil, err
		}
		at, err := st.next(ctx)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", a.ID, err)
		}
		if i >= 5 { // the first ones warm connections and supervisors
			got = append(got, time.Duration(at.UnixNano()-began.UnixNano()))
		}
		if _, err := s.AwaitJob(ctx, a.ID, "succeeded"); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// bareSequence runs the same steps by bare means, one after the other: sync a
// record, have an entry committed (the second sample), start the process.
func bareSequence(ctx context.Context, env environment, st *starts, runs int) (home, published sample, err error) {
	file, err := openSyncedFile(env.dir)
	if err != nil {
		return nil, nil, err
	}
	defer file.close()
	raft, err := openBareRaft(env, "bare-latency")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, raft.Close()) }()
	record := make([]byte, entryBytes)
	for range runs {
		began := time.Now()
		if err := file.add(record); err != nil {
			return nil, nil, err
		}
		synced := time.Since(began)
		began = time.Now()
		if err := raft.Apply(record); err != nil {
			return nil, nil, err
		}
		ordered := time.Since(began)
		started, err := startBare(ctx, env, st)
		if err != nil {
			return nil, nil, err
		}
		home = append(home, synced+started)
		published = append(published, synced+ordered+started)
	}
	return home, published, nil
}

func startBare(ctx context.Context, env environment, st *starts) (time.Duration, error) {
	began := time.Now()
	if err := exec.CommandContext(ctx, env.stamp, st.path).Run(); err != nil {
		return 0, fmt.Errorf("run stamp: %w", err)
	}
	at, err := st.next(ctx)
	return time.Duration(at.UnixNano() - began.UnixNano()), err
}
