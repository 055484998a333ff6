package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// jobsView is one page of the list.
type jobsView struct {
	Query, State, Site, User string
	States, Sites, Users     []string
	Own                      []jobRow // the newest of the visitor's, shown first
	OwnTitle, OwnMore        string   // OwnMore leads to all of them, "" = these are all
	Title                    string   // of the other jobs, "" = there is one list
	Rows                     []jobRow
	Next                     string // link to older ones, "" on the last page
	First                    bool   // the newest jobs are on this page
	Filtered                 bool
	Unfinished               bool // the search stopped at its bound
}

type jobRow struct {
	node.Job
	Bar  bar
	Ran  time.Duration // −1 = it did not start
	Done uint32        // tasks that ended
}

// Bad returns how many tasks failed or were lost.
func (r *jobRow) Bad() uint32 {
	return r.Counts[fsm.TaskFailed.String()] + r.Counts[fsm.TaskLost.String()]
}

// BadWords tells of the tasks that failed or were lost, unless the job's state
// says it all.
func (r *jobRow) BadWords() string {
	var words []string
	for _, state := range []string{fsm.TaskFailed.String(), fsm.TaskLost.String()} {
		if n := r.Counts[state]; n > 0 && r.Spec.Count > 1 {
			words = append(words, count(n)+" "+state)
		}
	}
	return strings.Join(words, ", ")
}

// Word returns the job's state for people: one of which some tasks have ended and none
// runs does not just wait.
func (r *jobRow) Word() string {
	if far := r.Progress(); far != "" && r.State == fsm.Queued.String() {
		return far
	}
	return r.State
}

// Waits says what the job waits for, while it is held.
func (r *jobRow) Waits() string {
	if r.Counts[node.Held] > 0 {
		return r.Reason
	}
	return ""
}

// Sure reports whether this broker knows the state by itself, whoever leads.
func (r *jobRow) Sure() bool { return r.Durability == node.DurableSite }

// jobStates are those of a whole job.
var jobStates = []string{"queued", "running", "succeeded", "failed", "cancelled", "lost", "withdrawn"}

const (
	pageJobs  = 50  // jobs on a page
	ownJobs   = 10  // that it begins with
	maxSearch = 200 // bytes of what is searched for
	// maxLooks bounds a search: each look passes a bounded number of jobs.
	maxLooks = 6
	// searchTime is after what time a search shows what it has.
	searchTime = 400 * time.Millisecond
)

// jobs lists jobs, newest first. The field takes a job's id, KEY=VALUE of a
// label, or a part of the name.
func (p *Pages) jobs(r *http.Request, _ func(string) string) (view, error) {
	in := r.URL.Query()
	v := jobsView{Query: strings.TrimSpace(in.Get("q")), State: in.Get("state"), Site: in.Get("site"), States: jobStates}
	if !slices.Contains(jobStates, v.State) {
		v.State = ""
	}
	if !command.ValidSite(v.Site) {
		v.Site = ""
	}
	if len(v.Query) > maxSearch || len(in.Get("cursor")) > maxSearch {
		return view{}, fmt.Errorf("%w: it, or what is searched for, has more than %d bytes", node.ErrBadCursor, maxSearch)
	}
	for _, s := range p.cfg.Source.Sites() {
		v.Sites = append(v.Sites, s.ID)
	}
	who := p.visitor(r)
	if who.Operates() {
		v.Users = p.users()
	}
	if user := in.Get("user"); who.Operates() && access.ValidUser(user) {
		v.User, v.Site = user, ""
	}
	v.First = in.Get("cursor") == ""
	v.Filtered = v.Query != "" || v.State != "" || v.Site != "" || v.User != ""
	if row, ok := p.byID(r.Context(), v.Query); ok {
		v.Rows = []jobRow{row}
		return view{template: "jobs", data: v}, nil
	}
	keep, err := p.ownFirst(r.Context(), who, &v)
	if err != nil {
		return view{}, err
	}
	found, next, err := p.searchFor(r.Context(), v.asked(in.Get("cursor")), keep)
	if err != nil {
		return view{}, err
	}
	v.Rows = rowsOf(found, p.cfg.Now())
	if next != "" {
		v.Next = v.link(next)
		v.Unfinished = len(found) < pageJobs
	}
	return view{template: "jobs", data: v}, nil
}

// byID finds the job that a search names.
func (p *Pages) byID(ctx context.Context, query string) (jobRow, bool) {
	id, err := command.ParseJobID(query)
	if err != nil {
		return jobRow{}, false
	}
	job, err := p.cfg.Source.Job(ctx, id)
	if e, ok := asElsewhere(err); ok && e.Peer != "" { // its owner knows; the link leads there
		return jobRow{Job: node.Job{ID: id, State: "elsewhere"}, Ran: -1}, true
	}
	if err != nil {
		return jobRow{}, false
	}
	return rowOf(job, p.cfg.Now()), true
}

func (v *jobsView) asked(cursor string) node.JobQuery {
	q := node.JobQuery{State: v.State, Site: v.Site, User: v.User, Limit: pageJobs, Cursor: cursor}
	key, value, isLabel := strings.Cut(v.Query, "=")
	switch {
	case isLabel:
		q.Labels = map[string]string{strings.TrimSpace(key): strings.TrimSpace(value)}
	default:
		q.Name = strings.ToLower(v.Query)
	}
	return q
}

func (v *jobsView) link(cursor string) string {
	q := url.Values{"cursor": {cursor}}
	for name, value := range map[string]string{"q": v.Query, "state": v.State, "site": v.Site, "user": v.User} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "/jobs?" + q.Encode()
}

// search goes on until a page is full, nothing is left, or it has looked long
// enough.
func (p *Pages) search(ctx context.Context, q node.JobQuery) (found []node.Job, next string, err error) {
	return p.searchFor(ctx, q, func(*node.Job) bool { return true })
}

// searchFor is search among the jobs that are to be kept.
func (p *Pages) searchFor(
	ctx context.Context, q node.JobQuery, keep func(*node.Job) bool,
) (found []node.Job, next string, err error) {
	until := time.Now().Add(searchTime)
	limit := q.Limit
	for range maxLooks {
		page, err := p.cfg.Source.Jobs(ctx, q)
		if err != nil {
			return nil, "", err
		}
		next = page.Next
		for i := range page.Items {
			if keep(&page.Items[i]) {
				found = append(found, page.Items[i])
			}
		}
		q.Cursor, q.Limit = next, limit-len(found)
		if next == "" || q.Limit <= 0 || time.Now().After(until) {
			break
		}
	}
	return found, next, nil
}

func rowsOf(jobs []node.Job, now time.Time) []jobRow {
	rows := make([]jobRow, 0, len(jobs))
	for _, j := range jobs {
		rows = append(rows, rowOf(j, now))
	}
	return rows
}

func rowOf(j node.Job, now time.Time) jobRow {
	row := jobRow{Job: j, Bar: progress(j.Counts), Ran: ran(j.StartedAt, j.EndedAt, now)}
	for _, end := range []string{"succeeded", "failed", "lost", "cancelled"} {
		row.Done += j.Counts[end]
	}
	return row
}

// ran returns how long something has run, −1 if it did not start.
func ran(start, end, now time.Time) time.Duration {
	switch {
	case start.IsZero():
		return -1
	case end.IsZero():
		end = now
	}
	return max(0, end.Sub(start))
}
