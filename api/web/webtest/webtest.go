// Package webtest is a federation that stands still: a hand-written broker for
// the tests of the pages (step 1 of a job's way, seen in a browser), as large as
// a test likes. It never imports package api or a backend.
package webtest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Broker is a broker of site-001. Its fields are set before it is used.
type Broker struct {
	Now      time.Time
	SiteList []node.Site
	Account  fsm.LedgerView
	Seen     node.Plausibility
	Waiting  []fsm.QueueView
	Policy   command.Params
	NotReady error
	// MemberList is fixed; what is pending changes.
	MemberList     []node.Member
	InvitationList []node.Invitation
	MotionList     []node.Motion
	// Outdated is why the state is not known yet, nil = it is.
	Outdated atomic.Pointer[error]
	// Old is the state's freshness, nil = just confirmed.
	Old atomic.Pointer[node.Freshness]
	// Err is what Job, Tasks, Logs and Cancel answer, if it is set.
	Err error
	// Log opens a task's output; nil gives two lines.
	Log func(ctx context.Context, q node.LogQuery) (io.ReadCloser, error)

	// Left are the files of every job that wants some; nil: two of each task that has begun.
	Left []web.ResultFile
	// LeftErr is why there are none to show.
	LeftErr error

	// Waits are the dependencies of jobs.
	Waits map[command.JobID]node.Dependencies

	// Asked counts calls of LastLines.
	Asked atomic.Int64

	mu      sync.Mutex
	jobs    []node.Job // oldest first
	moved   uint64
	feed    []node.Event
	changed chan struct{}
}

var _ web.Source = (*Broker)(nil)

// site returns the name of the n-th site, from 0.
func site(n int) string { return fmt.Sprintf("site-%03d", n+1) }

// New makes a federation of some sites with some jobs. It is the same each time.
func New(sites, jobs int) *Broker {
	b := &Broker{
		Now: time.Date(2026, 5, 4, 10, 30, 0, 0, time.UTC), Policy: command.DefaultParams(),
		changed: make(chan struct{}), moved: 1000,
	}
	for i := range sites {
		b.SiteList = append(b.SiteList, siteAt(i))
		if i%3 == 0 {
			b.Waiting = append(b.Waiting, fsm.QueueView{
				Site: site(i), Waiting: uint64(7*i + 3), MilliCPU: int64(9*i+3) * 1000,
				OldestMs: int64(3_600_000 - i*20_000),
				Priority: fmt.Sprint((sites/2 - i) * 3_600_000_000),
			})
		}
	}
	b.Account = ledger(sites)
	b.enroll(sites)
	b.jobs = make([]node.Job, 0, jobs)
	for i := range jobs {
		b.jobs = append(b.jobs, b.jobAt(i, sites, jobs))
	}
	return b
}

func siteAt(i int) node.Site {
	v := fsm.SiteView{
		ID: site(i), HTTP: fmt.Sprintf("10.0.%d.%d:7700", i/250, i%250+1), Incarnation: 1,
		Capacity: command.Resources{MilliCPU: 64_000, MemMiB: 256 << 10},
		Exposed:  command.Resources{MilliCPU: int64(48-i%7) * 1000},
		Assigned: command.Resources{MilliCPU: int64(i*13%40) * 1000},
		Home:     command.Resources{MilliCPU: int64(i*7%17) * 1000},
	}
	switch i % 23 {
	case 11:
		v.State, v.Exposed, v.Assigned = fsm.SiteGone, command.Resources{}, command.Resources{}
	case 17:
		v.State = fsm.Suspected
	case 5:
		v.Closed, v.Exposed = command.ClosedDrain, v.Assigned
	}
	return node.Site{SiteView: v, Voter: i < 5}
}

// ledger has every site use some of some others' machines. Priorities sum to 0.
func ledger(sites int) fsm.LedgerView {
	l := fsm.LedgerView{Index: 1000, TimeMs: 3_600_000, Unit: "mcpu·ms"}
	lent, used := make([]int64, sites), make([]int64, sites)
	for o := range sites {
		for e := range sites {
			n := int64((o*31+e*17)%29) * 180_000_000
			if (o+e)%4 != 0 || n == 0 {
				continue
			}
			used[o], lent[e] = used[o]+n, lent[e]+n
			l.Matrix = append(l.Matrix, fsm.CellView{
				Owner: site(o), Executor: site(e), Tasks: uint64(n / 90_000_000),
				A: fmt.Sprint(n), B: "0", R: "0",
			})
		}
	}
	for i := range sites {
		l.Sites = append(l.Sites, fsm.AccountView{
			Site: site(i), Contribution: fmt.Sprint(lent[i]), Utility: fmt.Sprint(used[i]),
			Priority: fmt.Sprint(lent[i] - used[i]),
		})
	}
	return l
}

var states = []string{"succeeded", "succeeded", "succeeded", "failed", "cancelled", "succeeded", "lost"}

// jobAt has the last jobs wait or run, all others have ended.
func (b *Broker) jobAt(i, sites, jobs int) node.Job {
	spec := jobspec.DefaultSpec()
	spec.Name, spec.Command = fmt.Sprintf("render frame %d", i), []string{"sh", "-c", fmt.Sprintf("render --frame %d", i)}
	spec.Labels = map[string]string{"team": []string{"film", "maps", "genes"}[i%3]}
	if i%3 == 0 {
		spec.Selectors = []string{"gpu", "zone in (a,b)"}
	}
	if i%4 == 1 {
		spec.Inputs = []jobspec.Input{
			{Path: "scene.blend", Blob: files.Blob{Size: 7 << 20}},
			{Path: "run.sh", From: jobspec.FromContent, Content: []byte("#!")},
			{Path: "sky.exr", From: jobspec.FromURL, URL: "https://data.example.org/sky.exr"},
		}
		spec.Outputs = jobspec.Outputs{Paths: []string{"out/*.png"}, Optional: []string{"log.txt"}}
	}
	spec.Count = uint32(1 + i%120)
	at := b.Now.Add(-time.Duration(jobs-i) * 10 * time.Second)
	j := node.Job{
		ID: command.JobID{Site: site(i % sites), Num: uint64(i/sites + 1)}, Spec: spec,
		Durability: node.DurableFederation,
		State:      states[i%len(states)], SubmittedAt: at, StartedAt: at.Add(2 * time.Second),
		EndedAt: at.Add(90 * time.Second),
		Counts:  map[string]uint32{},
	}
	j.Counts[j.State] = spec.Count
	switch left := jobs - i; {
	case left <= 10:
		j.State, j.Reason = "queued", "waiting for its turn and a free machine"
		j.StartedAt, j.EndedAt, j.Counts = time.Time{}, time.Time{}, map[string]uint32{"queued": spec.Count}
	case left <= 40:
		half := spec.Count / 2
		j.State, j.EndedAt = "running", time.Time{}
		j.Counts = map[string]uint32{"succeeded": half, "running": spec.Count - half}
	}
	return j
}

// Some returns a job of site-002 that began five minutes ago, with so many tasks in
// each state.
func (b *Broker) Some(num uint64, name, state string, counts map[string]uint32) node.Job {
	spec := jobspec.DefaultSpec()
	spec.Name, spec.Command = name, []string{"render"}
	for _, n := range counts {
		spec.Count += n
	}
	spec.Count-- // the default is one
	at := b.Now.Add(-5 * time.Minute)
	return node.Job{
		ID: command.JobID{Site: site(1), Num: num}, Spec: spec, State: state, Durability: node.DurableFederation,
		Counts: counts, SubmittedAt: at, StartedAt: at,
	}
}

// Submit adds a job and tells of it, as another user would.
func (b *Broker) Submit(j node.Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs = append(b.jobs, j)
	b.tell(fsm.Event{Kind: fsm.EventJobSubmitted, Job: j.ID, Count: j.Spec.Count})
}

// Tell has something happen.
func (b *Broker) Tell(e fsm.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell(e)
}

// tell is Tell. REQUIRES: b.mu held.
func (b *Broker) tell(e fsm.Event) {
	b.moved++
	e.Index = b.moved
	b.feed = append(b.feed, node.Event{
		Event: e, ID: node.EventID{Entry: b.moved, N: 1}, At: b.Now,
		Seq: uint64(len(b.feed) + 1),
	})
	close(b.changed)
	b.changed = make(chan struct{})
}

// find returns a job's place. REQUIRES: b.mu held.
func (b *Broker) find(id command.JobID) (int, error) {
	if b.Err != nil {
		return 0, b.Err
	}
	i := slices.IndexFunc(b.jobs, func(j node.Job) bool { return j.ID == id })
	if i < 0 {
		return 0, fmt.Errorf("job %s: %w", id, node.ErrNotFound)
	}
	return i, nil
}

// Job implements web.Source.
func (b *Broker) Job(_ context.Context, id command.JobID) (node.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, err := b.find(id)
	if err != nil {
		return node.Job{}, err
	}
	return b.jobs[i], nil
}

// mostLooks is how many jobs a call looks at, as the real list's bound.
const mostLooks = 20_000

// Jobs implements web.Source. Its cursor is a number of jobs.
func (b *Broker) Jobs(_ context.Context, q node.JobQuery) (page node.JobPage, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := len(b.jobs)
	if q.Cursor != "" {
		if _, err = fmt.Sscanf(q.Cursor, "%d.-", &at); err != nil || at > len(b.jobs) {
			return page, fmt.Errorf("cursor %.40q: %w", q.Cursor, node.ErrBadCursor)
		}
	}
	for looks := 0; at > 0 && looks < mostLooks && len(page.Items) < q.Limit; looks++ {
		at--
		j := b.jobs[at]
		if matches(&j, &q) {
			page.Items = append(page.Items, j)
		}
	}
	if at > 0 {
		page.Next = fmt.Sprintf("%d.-", at)
	}
	return page, nil
}

func matches(j *node.Job, q *node.JobQuery) bool {
	for k, v := range q.Labels {
		if have, ok := j.Spec.Labels[k]; !ok || have != v {
			return false
		}
	}
	return (q.State == "" || q.State == j.State) && (q.Site == "" || q.Site == j.ID.Site) &&
		strings.Contains(strings.ToLower(j.Spec.Name), q.Name)
}

// FindTasks implements web.Source: half of a running job's tasks have ended.
func (b *Broker) FindTasks(
	_ context.Context, id command.JobID, q node.TaskQuery,
) (out []node.Task, next uint32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, err := b.find(id)
	if err != nil {
		return nil, 0, err
	}
	for n := q.From; n < b.jobs[i].Spec.Count; n++ {
		if len(out) == q.Limit {
			return out, n, nil
		}
		t := b.taskAt(&b.jobs[i], n)
		if state, _ := node.ParseTaskState(t.State); q.States.Has(state) {
			out = append(out, t)
		}
	}
	return out, 0, nil
}

// LastLines implements web.Source.
func (b *Broker) LastLines(ctx context.Context, q node.LogQuery, _ int) ([]byte, error) {
	b.Asked.Add(1)
	body, err := b.Logs(ctx, q)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func (b *Broker) taskAt(j *node.Job, n uint32) node.Task {
	t := node.Task{Index: n, State: stateOf(j, n), Reason: j.Reason}
	if j.StartedAt.IsZero() || t.State == "queued" {
		return t
	}
	t.Site, t.Machine, t.Attempt, t.Token = site(int(n)%len(b.SiteList)), "local", 1, 900
	if n%7 == 3 {
		t.Attempt = 2
	}
	t.StartedAt, t.EndedAt = j.StartedAt.Add(time.Duration(n)*time.Second), j.EndedAt
	if j.State == "running" && t.State == "succeeded" {
		t.EndedAt = t.StartedAt.Add(30 * time.Second)
	}
	code := 0
	switch t.State {
	case "failed":
		code, t.Reason = 3, "exit code 3"
		fallthrough
	case "succeeded":
		t.ExitCode = &code
		t.Run = 30 * time.Second
		t.Measured = command.Measured{
			PeakBytes: int64(n%200+40) << 20, UserMs: 20_000, SystemMs: 1000, InBytes: 1536, OutBytes: 3 << 20,
			Source: command.MeasuredCgroup,
		}
	}
	return t
}

// stateOf has the tasks of a job come by state, those that failed after those
// that did not.
func stateOf(j *node.Job, n uint32) string {
	for _, state := range []string{"succeeded", "running", "failed", "lost", "cancelled", "queued"} {
		if n < j.Counts[state] {
			return state
		}
		n -= j.Counts[state]
	}
	return j.State
}

// Logs implements web.Source.
func (b *Broker) Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	if _, err := b.Job(ctx, q.Job); err != nil {
		return nil, err
	}
	if b.Log != nil {
		return b.Log(ctx, q)
	}
	return io.NopCloser(strings.NewReader(fmt.Sprintf("%s of task %d\nsecond line\n", q.Stream, q.Task))), nil
}

// Cancel implements web.Source.
func (b *Broker) Cancel(_ context.Context, id command.JobID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, err := b.find(id)
	if err != nil {
		return err
	}
	j := &b.jobs[i]
	if !j.EndedAt.IsZero() {
		return fmt.Errorf("job %s: %w", id, node.ErrEnded)
	}
	j.State, j.Reason, j.EndedAt, j.Counts = "cancelled", "cancelled by its owner", b.Now, map[string]uint32{"cancelled": j.Spec.Count}
	b.tell(fsm.Event{Kind: fsm.EventJobEnded, End: fsm.EndCancelled, Job: id, Count: j.Spec.Count})
	return nil
}

// Dependencies implements web.Source: those that were set.
func (b *Broker) Dependencies(_ context.Context, id command.JobID, _ int) (node.Dependencies, error) {
	return b.Waits[id], nil
}

// Sites implements web.Source.
func (b *Broker) Sites() []node.Site { return slices.Clone(b.SiteList) }

// Queue implements web.Source.
func (b *Broker) Queue() []fsm.QueueView { return slices.Clone(b.Waiting) }

// Ledger implements web.Source.
func (b *Broker) Ledger() fsm.LedgerView { return b.Account }

// Plausibility implements web.Source.
func (b *Broker) Plausibility() node.Plausibility { return b.Seen }

// Params implements web.Source.
func (b *Broker) Params() command.Params { return b.Policy }

// Status implements web.Source.
func (b *Broker) Status(bool) node.Status {
	return node.Status{
		Site: site(0), Lead: site(1), Term: 4, Index: 1000, Version: "test",
		Estimates: node.Calibration{Starts: 1000, Held: 908, Open: 31},
		Placement: coord.Placement{
			Majorities: map[string]time.Duration{
				site(0): 9 * time.Millisecond, site(1): 9 * time.Millisecond, site(2): 80 * time.Millisecond,
			},
			Turns: []string{site(0), site(1)},
		},
	}
}

// Ready implements web.Source.
func (b *Broker) Ready() error { return b.NotReady }

// Current implements web.Source.
func (b *Broker) Current() error {
	if why := b.Outdated.Load(); why != nil {
		return *why
	}
	return nil
}

// Freshness implements web.Source.
func (b *Broker) Freshness() node.Freshness {
	if old := b.Old.Load(); old != nil {
		return *old
	}
	return node.FreshnessOf(0, 6*time.Second)
}

// Site implements web.Source.
func (b *Broker) Site() string { return site(0) }

// Moved implements web.Source.
func (b *Broker) Moved() (entry, home uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved, 0
}

// AwaitMove implements web.Source.
func (b *Broker) AwaitMove(ctx context.Context, entry, _ uint64) error {
	for {
		b.mu.Lock()
		moved, changed := b.moved, b.changed
		b.mu.Unlock()
		if moved > entry {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Events implements web.Source.
func (b *Broker) Events(_ context.Context, from node.EventID, f node.EventFilter) web.Events {
	return &reader{b, f, from}
}

type reader struct {
	broker *Broker
	filter node.EventFilter
	place  node.EventID
}

// Place implements web.Events.
func (r *reader) Place() node.EventID { return r.place }

// Next implements web.Events.
func (r *reader) Next(ctx context.Context) ([]node.Event, error) {
	for {
		if out := r.look(); len(out) > 0 {
			return out, nil
		}
		if err := r.broker.AwaitMove(ctx, r.place.Entry, 0); err != nil {
			return nil, err
		}
	}
}

// Latest implements web.Events.
func (r *reader) Latest(after node.EventID, most int) (l node.Latest) {
	all := reader{r.broker, r.filter, after}
	l.Events, l.Place, l.Whole = all.look(), all.place, true
	if len(l.Events) > most {
		l.Events, l.Whole = l.Events[len(l.Events)-most:], false
	}
	if len(l.Events) > 0 {
		l.Since = l.Events[0]
	}
	return l
}

func (r *reader) look() (out []node.Event) {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	for _, e := range r.broker.feed {
		if e.ID.Entry <= r.place.Entry {
			continue
		}
		r.place = e.ID
		if (len(r.filter.Kinds) == 0 || r.filter.Kinds[e.Kind]) &&
			(r.filter.Site == "" || r.filter.Site == e.Site || r.filter.Site == e.Job.Site) {
			out = append(out, e)
		}
	}
	r.place.Entry = max(r.place.Entry, r.broker.moved)
	return out
}

// History is what happened in the last hours before Now.
type History struct{ Broker *Broker }

var _ web.History = History{}

// Attempts implements web.History: one began each second, somewhere.
func (h History) Attempts(_ context.Context, since time.Time, at string, limit int) (out []web.Attempt) {
	n := len(h.Broker.SiteList)
	for i := range 8000 {
		a := web.Attempt{
			Job: command.JobID{Site: site(i * 7 % min(n, 9)), Num: uint64(i + 1)}, Attempt: 1, Site: site(i * 5 % n),
			Started: h.Broker.Now.Add(-time.Duration(i) * time.Second), Outcome: "succeeded",
		}
		a.Ended = a.Started.Add(time.Duration(20+i*11%140) * time.Second)
		if i%17 == 0 {
			a.Outcome = "failed"
		}
		if a.Ended.After(h.Broker.Now) {
			a.Ended, a.Outcome = time.Time{}, ""
		}
		if (a.Ended.IsZero() || a.Ended.After(since)) && (at == "" || at == a.Site) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b web.Attempt) int {
		if a.Ended.IsZero() != b.Ended.IsZero() {
			if a.Ended.IsZero() {
				return -1
			}
			return 1
		}
		return b.Ended.Compare(a.Ended)
	})
	return out[:min(len(out), limit)]
}

// EarlierOf implements web.History: every seventh task had a first attempt that
// was lost.
func (h History) EarlierOf(job command.JobID, from, to uint32, limit int) (out []web.Attempt) {
	j, err := h.Broker.Job(context.Background(), job)
	if err != nil || j.StartedAt.IsZero() {
		return nil
	}
	for n := from; n < min(to, j.Spec.Count) && len(out) < limit; n++ {
		if n%7 == 3 {
			out = append(out, web.Attempt{
				Job: job, Task: n, Attempt: 1, Site: site(int(n+1) % len(h.Broker.SiteList)), Outcome: "lost",
				Started: j.StartedAt.Add(-time.Duration(n) * time.Second), Ended: j.StartedAt,
			})
		}
	}
	return out
}

// Samples implements web.History: every account grew, and swayed a little.
func (h History) Samples(since time.Time) (out []archive.Sample) {
	const steps = 96
	for i := range steps {
		s := archive.Sample{At: h.Broker.Now.Add(-time.Duration(steps-i) * 15 * time.Minute)}
		if s.At.Before(since) {
			continue
		}
		for k, a := range h.Broker.Account.Sites {
			part := float64(i) / steps * (1 + float64((i*(k+3))%11-5)/25)
			s.Sites = append(s.Sites, archive.Standing{
				Site: a.Site, Contribution: part * amount(a.Contribution), Utility: part * amount(a.Utility),
				Priority: part * amount(a.Priority),
			})
		}
		out = append(out, s)
	}
	return out
}

func amount(sum string) float64 {
	n, err := strconv.ParseFloat(sum, 64)
	if err != nil {
		panic(err) // the fixture wrote it
	}
	return n
}
