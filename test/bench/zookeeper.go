package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// backends are two federations alike but for their log, beside the ensemble that
// the second one is on.
type backends struct {
	env      environment
	bare     *bareZooKeeper
	raft, zk *submissions
	most     int // znodes of the federation so far
}

// measureZooKeeper measures the same things on Raft and on an ensemble of three
// servers, and bare creates there with as many in flight.
func measureZooKeeper(ctx context.Context, env environment, t *table) (err error) {
	if cause := ensemble.Installed(); cause != nil {
		return cause
	}
	dir := filepath.Join(env.dir, "zookeeper")
	servers, err := ensemble.New(ensemble.Config{Dir: dir, Servers: 3, Tick: 500 * time.Millisecond, HeapMiB: 1024})
	if err != nil {
		return err
	}
	defer servers.Stop()
	if err = servers.Start(ctx); err != nil {
		return err
	}
	bare, err := dialBareZooKeeper(servers.Addrs())
	if err != nil {
		return err
	}
	defer bare.conn.Close()
	b := &backends{env: env, bare: bare}
	var stop func() error
	if b.raft, stop, err = held(ctx, env, "on-raft"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	env.coordination, env.zk, env.zkAuth = "zookeeper", servers.Addrs()+"/bench", filepath.Join(dir, "digest")
	if err = os.WriteFile(env.zkAuth, []byte("bench:bench\n"), 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	var stopZK func() error
	if b.zk, stopZK, err = held(ctx, env, "on-zookeeper"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopZK()) }()
	if err := b.starts(ctx, t); err != nil {
		return err
	}
	if err := b.submissions(ctx, t); err != nil {
		return err
	}
	t.add(figure{
		name: "ZooKeeper: most znodes of the federation", measured: float64(b.most), unit: "znodes", aim: aim{below: 20_000},
		note: "bound: 16384 entries, their parts and two snapshots; looked at after each window",
	})
	return nil
}

// held starts a federation in which the jobs of submissions wait.
func held(ctx context.Context, env environment, name string) (*submissions, func() error, error) {
	fed, err := startSites(ctx, env, name, siteCount, 1, env.shares())
	if err != nil {
		return nil, nil, err
	}
	if _, err := occupy(ctx, fed.Sites[2], 1); err != nil {
		return nil, nil, errors.Join(err, fed.Stop())
	}
	spec := testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{fed.Sites[2].Name}}}
	return &submissions{env: env, fed: fed, spec: mustJSON(spec)}, fed.Stop, nil
}

// request is a kind of submission.
type request struct {
	name, mime string
	body       []byte
	jobs       int
	entry      int // bytes of the bare create
}

// submissions of single jobs and of many in a request.
func (b *backends) submissions(ctx context.Context, t *table) error {
	many := bytes.Repeat(append(bytes.Clone(b.zk.spec), '\n'), linesPerRequest)
	for _, k := range []request{
		{"singles", "application/json", b.zk.spec, 1, entryBytes},
		{fmt.Sprintf("NDJSON of %d", linesPerRequest), "application/x-ndjson", many, linesPerRequest, len(many)},
	} {
		for _, c := range clientCounts {
			if err := b.submit(ctx, t, k, c.n); err != nil {
				return fmt.Errorf("%s, %d clients: %w", k.name, c.n, err)
			}
		}
	}
	return nil
}

// submit has n clients submit on both logs, beside what they are to be compared with.
func (b *backends) submit(ctx context.Context, t *table, k request, n int) error {
	created, err := countInWindow(ctx, n, window(b.env),
		func(int) (int, error) { return k.jobs, b.bareJobs(k.body, k.jobs, k.entry) })
	if err != nil {
		return fmt.Errorf("create znodes: %w", err)
	}
	applied, err := b.applied(ctx, n, k.body)
	if err != nil {
		return fmt.Errorf("create znodes and apply: %w", err)
	}
	onRaft, raftTime, err := b.raft.busy(ctx, n, k)
	if err != nil {
		return fmt.Errorf("submit on raft: %w", err)
	}
	onZK, zkTime, err := b.zk.busy(ctx, n, k)
	if err != nil {
		return fmt.Errorf("submit on ZooKeeper: %w", err)
	}
	znodes, err := b.bare.count("/bench")
	if err != nil {
		return fmt.Errorf("count znodes: %w", err)
	}
	b.most = max(b.most, znodes)
	f := figure{name: fmt.Sprintf("ZooKeeper: submissions, %s, %d clients", k.name, n), measured: onZK, unit: "jobs/s"}
	f.limit, f.note, f.aim = created, "limit: bare creates of as many bytes from one session; of many lines encoding/json before", aim{minRatio: 0.7}
	t.add(f)
	f.name, f.aim = "  and applied", aim{}
	f.limit, f.note = applied, "limit: the creates, of entries made for them and then decoded and applied by three bare state machines"
	t.add(f)
	f.name, f.limit, f.note = "  on Raft", onRaft, "limit: the same submissions on Raft"
	t.add(f)
	t.add(figure{
		name: "  brokers' processor time of a job", measured: zkTime, limit: raftTime, unit: "µs",
		note: fmt.Sprintf("limit: on Raft; at these rates %.1f and %.1f of %d cores", zkTime*onZK/1e6, raftTime*onRaft/1e6, runtime.NumCPU()),
	})
	return nil
}

// busy is submitFor with what the brokers used of the cores for a job, in µs.
func (s *submissions) busy(ctx context.Context, n int, k request) (rate, each float64, err error) {
	was, err := processorTimeOf(s.fed)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if rate, err = s.submitFor(ctx, n, k.mime, k.body, k.jobs); err != nil {
		return 0, 0, err
	}
	jobs := rate * time.Since(began).Seconds()
	now, err := processorTimeOf(s.fed)
	return rate, float64(now.since(was).brokers.Microseconds()) / jobs, err
}

// bareJobs is what no submission can do without.
func (b *backends) bareJobs(body []byte, jobs, entry int) error {
	if jobs > 1 {
		if _, err := decodeLines(body); err != nil {
			return err
		}
	}
	return b.bare.create(entry)
}

// appliedWindow is short: three states in this process grow with every job.
func appliedWindow(env environment) time.Duration {
	return pick(env, time.Second, 300*time.Millisecond)
}

// applied returns how many jobs a second n clients bring through decoding, bare creates
// and three bare state machines: what the brokers do with every job, without HTTP,
// journal, answers or anything sent between them.
func (b *backends) applied(ctx context.Context, n int, body []byte) (float64, error) {
	states, err := newBareStates(n)
	if err != nil {
		return 0, err
	}
	defer runtime.GC() // what is measured next is not to collect it
	return countInWindow(ctx, n, appliedWindow(b.env), func(client int) (int, error) {
		jobs, err := decodeLines(body)
		if err != nil {
			return 0, err
		}
		entry := states.sites[client].entry(slices.Collect(bytes.Lines(body)))
		if err := b.bare.create(len(entry)); err != nil {
			return 0, err
		}
		return jobs, states.apply(entry)
	})
}

// starts times submit → running through both logs.
func (b *backends) starts(ctx context.Context, t *table) (err error) {
	bare, err := openBareSequence(b.env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	var took [2]sample
	for i, s := range []*submissions{b.raft, b.zk} {
		_, others, err := leadAndOthers(ctx, s.fed)
		if err != nil {
			return err
		}
		from, to := others[0], s.fed.Sites[0]
		if from == to {
			to = s.fed.Sites[1]
		}
		spec := testbed.Spec{
			Command: []string{b.env.stamp, bare.starts.path},
			Sites:   &testbed.Where{Only: []string{to.Name}},
		}
		if took[i], _, err = timeStarts(ctx, latencyRuns(b.env), from, spec, bare, true); err != nil {
			return fmt.Errorf("time starts: %w", err)
		}
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		t.add(figure{
			name: "ZooKeeper: submit → running, published, " + q.name, measured: took[1].quantile(q.q), limit: took[0].quantile(q.q),
			unit: "ms", note: "limit: the same on Raft",
		})
	}
	return nil
}

// bareZooKeeper is the library alone: one session that creates znodes.
type bareZooKeeper struct {
	conn *zk.Conn
	acl  []zk.ACL
	next atomic.Int64
}

func dialBareZooKeeper(addrs string) (*bareZooKeeper, error) {
	conn, events, err := zk.Connect(strings.Split(addrs, ","), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	go func() {
		for range events { // until the connection is closed
		}
	}()
	b := &bareZooKeeper{conn: conn, acl: zk.DigestACL(zk.PermAll, "bare", "bare")}
	for _, who := range []string{"bare:bare", "bench:bench"} {
		err = errors.Join(err, conn.AddAuth("digest", []byte(who)))
	}
	if err == nil {
		_, err = conn.Create("/bare", nil, 0, b.acl)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("prepare bare creates: %w", err)
	}
	return b, nil
}

// count returns how many znodes there are below a path.
func (b *bareZooKeeper) count(path string) (int, error) {
	names, _, err := b.conn.Children(path)
	if err != nil {
		return 0, err
	}
	n := len(names)
	if path != "/bench" {
		return n, nil
	}
	for _, name := range names {
		k, err := b.count(path + "/" + name)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// create makes a znode of so many bytes, and deletes an old one now and then, so
// that the servers are not busy with their memory: a collection of longer than a session
// ends it.
func (b *bareZooKeeper) create(size int) error {
	const kept = 100
	n := b.next.Add(1)
	if _, err := b.conn.Create(fmt.Sprintf("/bare/%d", n), make([]byte, size), 0, b.acl); err != nil {
		return err
	}
	if size > entryBytes && n > kept {
		if err := b.conn.Delete(fmt.Sprintf("/bare/%d", n-kept), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
