package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
)

// fakeBroker is a broker of site-1 that knows what the tests need.
type fakeBroker struct {
	waits map[command.JobID]node.Dependencies
	fakeFiles
	retired  bool            // jobs are no longer kept, and their results are
	limits   node.UserLimits // of everybody
	held     uint64          // of alice's tasks
	limitsOf string          // whose were set last
	mu       sync.Mutex
	site     string
	users    map[uint64]string // whose jobs are, by number
	attached map[uint64]*node.Attached
	awaiting map[uint64]bool // jobs that await their inputs
	settled  chan uint64     // those that do no more; tests read it
	name     string          // that it answers by, if not site
	index    uint64
	jobs     []node.Job
	keys     map[string]command.JobID
	asked    context.Context // of the last Submit
	chunks   []int           // sizes of Submit calls
	params   command.Params
	live     error
	outdated error          // of Current
	fresh    node.Freshness // zero Lease: always just confirmed
	confirm  error          // of Confirm
	ready    error
	submit   error             // every submission's error
	others   map[string]string // HTTP addresses of other sites' brokers
	elseErr  error             // what Job, Tasks, Logs and Cancel answer
	log      func(ctx context.Context, q node.LogQuery) (io.ReadCloser, error)
	kept     func(position uint32) node.KeptOutput
	mayHave  []node.ElsewhereError // what MayHaveRun answers
	surveyed int                   // calls of KeptOutputs
	query    node.JobQuery         // the last one
	tasks    map[uint32]node.Task  // of every job
	drain    wire.Drain
	left     []string // what Leave was asked
	replica  *replica.Replica
	seq      uint64 // of its last command
}

var _ Broker = (*fakeBroker)(nil)

func newFake(site string) *fakeBroker {
	return &fakeBroker{
		site: site, index: 7, params: command.DefaultParams(),
		keys: map[string]command.JobID{}, users: map[uint64]string{},
		attached: map[uint64]*node.Attached{}, awaiting: map[uint64]bool{}, settled: make(chan uint64, 100),
		replica: replica.NewReplica(),
	}
}

func (f *fakeBroker) BeginSubmit(ctx context.Context, reqs []node.Request) func() []node.Answer {
	answers := f.Submit(ctx, reqs)
	return func() []node.Answer { return answers }
}

func (f *fakeBroker) Submit(ctx context.Context, reqs []node.Request) []node.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = ctx
	f.chunks = append(f.chunks, len(reqs))
	out := make([]node.Answer, len(reqs))
	for i, r := range reqs {
		if r.Key != "" && r.Line > 0 {
			r.Key = fmt.Sprintf("%s/%d", r.Key, r.Line)
		}
		body := fmt.Sprintf("%s %x", r.Key, r.Meaning)
		id, known := f.keys[body]
		switch {
		case f.submit != nil:
			out[i].Err = f.submit
			continue
		case r.Strict:
			out[i].Err = fmt.Errorf("%w: needs %d cores", node.ErrUnfit, r.Spec.Resources.CPU)
			continue
		case r.Key != "" && known:
			out[i] = node.Answer{ID: id, State: "queued", Durability: node.DurableFederation, Replayed: true}
			continue
		case r.Key != "" && f.keys[r.Key].Num != 0:
			out[i].Err = node.ErrKeyReused
			continue
		case r.Refused != nil:
			out[i].Err = r.Refused
			continue
		}
		f.index++
		id = command.JobID{Site: f.site, Num: uint64(len(f.jobs) + 1)}
		f.users[id.Num] = r.User
		if r.Attached != nil {
			r.Attached.User = r.User
			f.attached[id.Num] = r.Attached
			if r.Importing {
				f.awaiting[id.Num] = true
			}
		}
		f.jobs = append(f.jobs, node.Job{
			ID: id, Spec: r.Spec, State: "queued", Durability: node.DurableFederation,
			SubmittedAt: time.UnixMilli(1_000_000).UTC(), Counts: map[string]uint32{"queued": r.Spec.Count},
			Notices: node.NewNotices(r.User, r.Spec.Notify).List,
		})
		if r.Key != "" {
			f.keys[body], f.keys[r.Key] = id, id
		}
		out[i] = node.Answer{ID: id, State: "queued", Durability: node.DurableFederation}
	}
	return out
}

func (f *fakeBroker) find(id command.JobID) (node.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.elseErr != nil {
		return node.Job{}, f.elseErr
	}
	if at, known := f.others[id.Site]; known {
		return node.Job{}, &node.ElsewhereError{Site: id.Site, Peer: at, Role: "owner"}
	}
	if id.Site != f.site || id.Num > uint64(len(f.jobs)) {
		return node.Job{}, fmt.Errorf("job %s: %w", id, node.ErrNotFound)
	}
	return f.jobs[id.Num-1], nil
}

// UserOf implements Broker.
func (f *fakeBroker) UserOf(num uint64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.users[num]
}

func (f *fakeBroker) Job(_ context.Context, id command.JobID) (node.Job, error) {
	if f.retired {
		return node.Job{}, fmt.Errorf("job %s: %w", id, node.ErrNotFound)
	}
	return f.find(id)
}

func (f *fakeBroker) Jobs(_ context.Context, q node.JobQuery) (node.JobPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.query = q
	return node.JobPage{Items: f.jobs[:min(len(f.jobs), q.Limit)], Next: ""}, nil
}

// FindTasks implements Broker: a task is as f.tasks says, else queued.
func (f *fakeBroker) FindTasks(_ context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error) {
	job, err := f.find(id)
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	tasks := f.tasks
	f.mu.Unlock()
	var out []node.Task
	for i := q.From; i < job.Spec.Count; i++ {
		t, known := tasks[i]
		if t.Index = i; !known {
			t.State = "queued"
		}
		state, _ := fsm.ParseTaskState(t.State)
		if !q.States.Has(state) || q.Only.Len() > 0 && !q.Only.Has(i) {
			continue
		}
		if len(out) == q.Limit {
			return out, i, nil
		}
		out = append(out, t)
	}
	return out, 0, nil
}

func (f *fakeBroker) Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	if f.log != nil && f.elseErr == nil && q.Job.Site != f.site { // a task of another site's job, which ran here
		return f.log(ctx, q)
	}
	if _, err := f.find(q.Job); err != nil {
		return nil, err
	}
	if f.log != nil {
		return f.log(ctx, q)
	}
	return io.NopCloser(strings.NewReader(fmt.Sprintf("%s of task %d attempt %d\n", q.Stream, q.Task, q.Attempt))), nil
}

// KeptOutputs implements Broker.
func (f *fakeBroker) KeptOutputs(_ command.JobID, positions []uint32) (out []node.KeptOutput) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.surveyed++
	for _, position := range positions {
		if f.kept == nil {
			break
		}
		if k := f.kept(position); k != (node.KeptOutput{}) {
			k.Position = position
			out = append(out, k)
		}
	}
	return out
}

// MayHaveRun implements Broker.
func (f *fakeBroker) MayHaveRun(command.JobID) []node.ElsewhereError { return f.mayHave }

func (f *fakeBroker) Dependencies(_ context.Context, id command.JobID, _ int) (node.Dependencies, error) {
	d := f.waits[id]
	d.Waiting, d.Followed = slices.Clone(d.Waiting), slices.Clone(d.Followed) // whoever asks may leave some out
	return d, nil
}

func (f *fakeBroker) Cancel(_ context.Context, id command.JobID) error {
	if _, err := f.find(id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j := &f.jobs[id.Num-1]
	if j.State == "cancelled" {
		return fmt.Errorf("job %s: %w", id, node.ErrEnded)
	}
	j.State = "cancelled"
	f.index++
	return nil
}

// SetHold implements Broker: the second job was submitted without gates.
func (f *fakeBroker) SetHold(_ context.Context, id command.JobID, _ bool) error {
	if _, err := f.find(id); err != nil {
		return err
	}
	if id.Num == 2 {
		return fmt.Errorf("job %s: %w: not all brokers know how", id, node.ErrNotReady)
	}
	return nil
}

// SetPriority implements Broker.
func (f *fakeBroker) SetPriority(_ context.Context, ids []command.JobID, priority int32) []error {
	out := make([]error, len(ids))
	for i, id := range ids {
		job, err := f.find(id)
		switch {
		case err != nil:
			out[i] = err
		case job.State == "cancelled":
			out[i] = fmt.Errorf("change the priority of job %s: %w", id, node.ErrEnded)
		default:
			f.mu.Lock()
			f.jobs[id.Num-1].Spec.Priority = priority
			f.mu.Unlock()
		}
	}
	return out
}

// CancelAll implements Broker: tasks of a job are cancelled by name only.
func (f *fakeBroker) CancelAll(ctx context.Context, targets []node.CancelTarget) []error {
	out := make([]error, len(targets))
	for i, t := range targets {
		switch job, err := f.find(t.Job); {
		case err != nil:
			out[i] = err
		case t.Tasks.Len() == 0:
			out[i] = f.Cancel(ctx, t.Job)
		case !t.Tasks.Has(job.Spec.Count - 1):
			out[i] = fmt.Errorf("cancel tasks of job %s: %w", t.Job, node.ErrEnded)
		}
	}
	return out
}

// Rerun implements Broker.
func (f *fakeBroker) Rerun(ctx context.Context, id command.JobID, q node.TaskQuery) (jobspec.Spec, error) {
	q.Limit = 1000
	tasks, _, err := f.FindTasks(ctx, id, q)
	if err != nil {
		return jobspec.Spec{}, err
	}
	job, _ := f.find(id)
	spec := job.Spec
	for _, t := range tasks {
		spec.Indices.Add(t.Index)
	}
	if spec.Count = spec.Indices.Len(); spec.Count == 0 {
		return spec, fmt.Errorf("run tasks of job %s again: %w", id, node.ErrNothing)
	}
	return spec, nil
}

func (f *fakeBroker) Sites() []node.Site {
	return []node.Site{{SiteView: fsm.SiteView{
		ID: "site-1", HTTP: "127.0.0.1:1", Peer: "127.0.0.1:2", Incarnation: 3,
		Capacity: command.Resources{MilliCPU: 2000, MemMiB: 512},
		Machines: []fsm.MachineView{
			{Name: "local", Exposed: command.Resources{MilliCPU: 2000}},
			{Name: "pods", Exposed: command.Resources{MilliCPU: 1000}, Runs: command.RunsImages},
		},
	}, Voter: true}}
}

func (f *fakeBroker) Plausibility() node.Plausibility {
	return node.Plausibility{
		Since: time.Date(2026, 11, 22, 10, 0, 0, 5, time.UTC), HalfLife: time.Hour,
		Sites: []node.SitePlausibility{
			{Site: "site-1", Runs: 1.99999, Ran: 0.5},
			{
				Site: "site-2", Runs: 30.5, Beyond: 3, Excess: 90 * time.Second, Declined: 12, Unstarted: 1,
				Lent: 96, Ran: 2, Idle: 1,
				Slowness: node.Slowness{Tasks: 30, Elsewhere: 50, Jobs: 4, Owners: 2, Factor: 2.0004, AtLeast: 1.6},
				Notes:    []string{"tasks took 2.0 times as long"},
			},
		},
	}
}

func (f *fakeBroker) Queue() []fsm.QueueView {
	return []fsm.QueueView{{Site: "site-1", Waiting: 3, MilliCPU: 3000, OldestMs: 5, Priority: "-12"}}
}

func (f *fakeBroker) Quotas() []fsm.QuotaView {
	return []fsm.QuotaView{
		{Site: "site-1", Uses: []fsm.Use{
			{Quota: command.QuotaTasks, Used: 3, Limit: 10},
			{Quota: command.QuotaKept, Used: 7, Limit: 7},
		}},
		{Site: "site-2", Uses: []fsm.Use{{Quota: command.QuotaTasks, Used: 0, Limit: 10}}},
	}
}

func (f *fakeBroker) Ledger() fsm.LedgerView {
	return fsm.LedgerView{
		Index: 7, TimeMs: 99, Unit: "mcpu·ms",
		Sites:  []fsm.AccountView{{Site: "site-1", Contribution: "5", Utility: "3", Priority: "2"}},
		Matrix: []fsm.CellView{{Owner: "site-1", Executor: "site-1", Tasks: 1, A: "3", B: "9", R: "0"}},
	}
}

func (f *fakeBroker) Params() command.Params {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.params
}

func (f *fakeBroker) SetParams(_ context.Context, p command.Params) (*node.Motion, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.RetainJobs < 0 {
		return nil, &node.ParamError{Field: "retain_jobs", Value: strconv.FormatInt(p.RetainJobs, 10), Why: "must be at least 1000"}
	}
	if p.DepartureMs == 1 { // site-2 is to agree
		m := f.motion(8, "policy", "")
		m.Params = &p
		return &m, nil
	}
	f.params = p
	return nil, nil
}

// wish keeps what the site is to take on.
func (f *fakeBroker) wish(ctx context.Context, d wire.Drain) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drain = d
	return ctx.Err()
}

func (f *fakeBroker) Drain(ctx context.Context, own bool) error {
	return f.wish(ctx, wire.Drain{Draining: true, Own: own})
}

func (f *fakeBroker) Resume(ctx context.Context) error { return f.wish(ctx, wire.Drain{}) }

func (f *fakeBroker) Draining(context.Context) (on, own bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drain.Draining, f.drain.Own
}

func (f *fakeBroker) Leave(ctx context.Context, now, forget bool) error {
	f.mu.Lock()
	f.left = append(f.left, fmt.Sprintf("now %t forget %t", now, forget))
	f.mu.Unlock()
	return f.Drain(ctx, true)
}

func (f *fakeBroker) Status(hash bool) node.Status {
	s := node.Status{
		Site: f.site, Lead: "site-1", Term: 2, Index: 7, Version: "v", Federation: "uuid", Incarnation: 3,
		Estimates: node.Calibration{Starts: 40, Held: 37, Open: 2}, Voters: []string{"site-1"}, Members: []string{"site-1"},
		Handlers: []node.HandlerStatus{{Name: "local", Status: "ok"}},
		Placement: node.Placement{
			Majorities: map[string]time.Duration{"site-1": 10 * time.Millisecond, "site-2": 150 * time.Millisecond}, Turns: []string{"site-1"},
		},
	}
	if hash {
		s.HashIndex, s.Hash = 7, "abc"
	}
	return s
}

func (f *fakeBroker) Events(from node.EventID, filter node.EventFilter) *replica.Subscription {
	return f.replica.Events(from, filter, func(id command.JobID) map[string]string {
		j, _ := f.find(id)
		return j.Spec.Labels
	})
}

func (f *fakeBroker) Feed() *replica.Feed { return f.replica.Feed() }

func (f *fakeBroker) Index() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index
}
func (f *fakeBroker) Site() string   { return cmp.Or(f.name, f.site) }
func (f *fakeBroker) Live() error    { return f.live }
func (f *fakeBroker) Current() error { return f.outdated }

func (f *fakeBroker) Freshness() node.Freshness {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh.Lease == 0 {
		return node.FreshnessOf(0, 6*time.Second)
	}
	return f.fresh
}

func (f *fakeBroker) Confirm(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.confirm == nil && f.fresh.Lease > 0 {
		f.fresh = node.FreshnessOf(0, f.fresh.Lease)
	}
	return f.confirm
}
func (f *fakeBroker) Ready() error { return f.ready }

var errDisk = errors.New("disk on fire")

// serve starts a server before the fake, on a free port.
func serve(t *testing.T, f *fakeBroker, cfg Config) *Server {
	t.Helper()
	cfg.Listen, cfg.DialPeer = "127.0.0.1:0", dialPeer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Peers = peerListener{l}
	s := New(cfg, f, prometheus.NewRegistry(), zerolog.Nop())
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	peerAddrs.Store(s, l.Addr().String())
	t.Cleanup(func() {
		peerAddrs.Delete(s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s
}

// ask answers one request without a network.
func ask(s *Server, method, target, contentType, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost"
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func newServer(b Broker) *Server {
	return New(Config{DialPeer: dialPeer}, b, prometheus.NewRegistry(), zerolog.Nop())
}

var _ http.Handler = (*Server)(nil)

// Users has alice, within the limits that were last set for everybody.
func (f *fakeBroker) Users(context.Context) ([]node.UserUse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []node.UserUse{
		{User: node.EveryUser, Limits: f.limits},
		{
			User: "alice", Limits: f.limits, From: node.LimitsOfEverybody, Tasks: 3, MilliCPU: 3000, Bytes: 42,
			CoreSeconds: 7200, Held: f.held,
		},
	}, nil
}

func (f *fakeBroker) SetUserLimits(_ context.Context, user string, change node.UserLimitsChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limitsOf, f.limits = user, change.Apply(f.limits)
	return nil
}
