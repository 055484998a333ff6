package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// linesPerRequest of the NDJSON figures: the broker publishes them as one entry.
const linesPerRequest = 1000

// window of one submission figure and of its bare loop.
func window(env environment) time.Duration { return pick(env, 3*time.Second, 500*time.Millisecond) }

// clientCounts at which submissions are measured, and what peers did there.
var clientCounts = []struct {
	n     int
	peers string
}{
	{1, "Nomad 53"},
	{16, "Nomad 321, Slurm 160 to 450 (8), Kubernetes 210"},
	{64, "Nomad 450"},
}

// submissions is the set-up of these figures: a federation, and bare raft beside
// it.
type submissions struct {
	env  environment
	fed  *testbed.Federation
	bare *coordtest.BareRaft
	spec []byte // of one job
}

// measureSubmissions counts acknowledged jobs a second. The jobs may only run
// at a site whose cores are taken, so that nothing starts in the window and
// every acknowledgement is a commit by the federation. Client n talks to the
// n-th broker, in turn.
func measureSubmissions(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareRaft(env, "bare-submissions")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	fed, err := startSites(ctx, env, "submissions", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	if _, err := occupy(ctx, fed.Sites[2], 1); err != nil {
		return err
	}
	spec := testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{fed.Sites[2].Name}}}
	s := &submissions{env: env, fed: fed, bare: bare, spec: mustJSON(spec)}
	if err := s.singles(ctx, t); err != nil {
		return err
	}
	return s.lines(ctx, t)
}

// singles sends one job a request, beside one bare entry each.
func (s *submissions) singles(ctx context.Context, t *table) error {
	entry := make([]byte, entryBytes)
	for _, c := range clientCounts {
		limit, err := countInWindow(ctx, c.n, window(s.env), func(int) (int, error) { return 1, s.bare.Apply(entry) })
		if err != nil {
			return err
		}
		rate, err := s.submitFor(ctx, c.n, "application/json", s.spec, 1)
		if err != nil {
			return fmt.Errorf("submit singles with %d clients: %w", c.n, err)
		}
		f := figure{
			name: fmt.Sprintf("submissions, singles, %d clients", c.n), measured: rate,
			limit: limit, unit: "jobs/s", peers: c.peers, note: "limit: bare raft Apply loop",
		}
		if c.n == 64 {
			f.aim = aim{minRatio: 0.7}
		}
		t.add(f)
	}
	return nil
}

// lines sends many jobs a request, beside decoding the same lines and applying
// the same bytes as one bare entry.
func (s *submissions) lines(ctx context.Context, t *table) error {
	many := bytes.Repeat(append(bytes.Clone(s.spec), '\n'), linesPerRequest)
	for _, c := range clientCounts {
		limit, err := countInWindow(ctx, c.n, window(s.env), func(int) (int, error) { return bareLines(s.bare, many) })
		if err != nil {
			return err
		}
		rate, err := s.submitFor(ctx, c.n, "application/x-ndjson", many, linesPerRequest)
		if err != nil {
			return fmt.Errorf("submit NDJSON with %d clients: %w", c.n, err)
		}
		t.add(figure{
			name:     fmt.Sprintf("submissions, NDJSON of %d, %d clients", linesPerRequest, c.n),
			measured: rate, limit: limit, unit: "jobs/s", aim: aim{atLeast: 50_000}, peers: c.peers + " (singles)",
			note: "limit: encoding/json of the same lines, then bare raft Apply of the same bytes, an entry a request; no HTTP, no answers",
		})
	}
	return nil
}

// bareLines is what no submission of many lines can do without.
func bareLines(bare *coordtest.BareRaft, lines []byte) (int, error) {
	n, err := decodeLines(lines)
	if err != nil {
		return n, err
	}
	return n, bare.Apply(lines)
}

// decodeLines returns how many specs there are.
func decodeLines(lines []byte) (n int, err error) {
	for line := range bytes.Lines(lines) {
		var spec testbed.Spec
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&spec); err != nil {
			return n, fmt.Errorf("decode line %d: %w", n, err)
		}
		n++
	}
	return n, nil
}

// submitFor has n clients post the body, of so many jobs, for one window.
func (s *submissions) submitFor(
	ctx context.Context, n int, contentType string, body []byte, jobs int,
) (float64, error) {
	lanes, err := dialLanes(ctx, s.fed, n, contentType, body)
	if err != nil {
		return 0, err
	}
	defer closeLanes(lanes)
	return countInWindow(ctx, n, window(s.env), func(c int) (int, error) { return lanes[c].postJobs(jobs) })
}

// occupy takes so many cores of a site until the returned job is cancelled or
// the federation ends.
func occupy(ctx context.Context, s *testbed.Site, cores int) (string, error) {
	return occupyBy(ctx, s, testbed.Spec{Command: []string{"sleep", "900"}, Count: cores})
}

// occupyBy is occupy by tasks of another form.
func occupyBy(ctx context.Context, s *testbed.Site, spec testbed.Spec) (string, error) {
	spec.Sites = &testbed.Where{Only: []string{s.Name}}
	a, err := s.Submit(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("occupy %s: %w", s.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = testbed.Await(ctx, "all cores of "+s.Name, func() error {
		job, e := s.Job(ctx, a.ID)
		if e == nil && job.Counts["running"] != spec.Count {
			e = fmt.Errorf("job %s has tasks %v", a.ID, job.Counts)
		}
		return e
	})
	return a.ID, err
}
