// Package webtest is a federation that stands still: a hand-written broker for
// the tests of the pages (step 1 of a job's way, seen in a browser), as large as
// a test likes. It never imports package api or a backend.
package webtest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
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

// SetHold implements web.Source.
func (b *Broker) SetHold(context.Context, command.JobID, bool) error { return nil }

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
		Placement: node.Placement{
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
