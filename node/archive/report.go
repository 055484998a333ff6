package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// ErrBadGroup is returned for an unknown way to group a report.
var ErrBadGroup = errors.New("by must be site, user, hour, day, month or label:KEY")

// maxRows bounds a report; what is beyond shares the row OtherRow.
const maxRows = 1000

// Names of rows that are no value of the group.
const (
	OtherRow = "(others)"
	// NoLabel is of what has no such label; by user, of the site's own jobs, of other sites' and of those whose user is
	// not known any more.
	NoLabel = "(none)"
)

// Row is a part of a report. Times on cores are milli-cores times milliseconds.
type Row struct {
	Key string
	// Own: this row's site ran its own tasks. Lent: it ran other sites' tasks.
	// Used: other sites ran its tasks. Without grouping by site that is this
	// broker's site; Others is then what neither owner nor executor it was.
	Own, Lent, Used, Others int64
	// Attempts that ran, of this row's tasks and those that it ran for others, and what they have used.
	Attempts uint64
	Measured Used
	// Tasks that ended, by their owner, and how; of home runs that other sites
	// reported, how is not known.
	Tasks, Succeeded, Failed, Cancelled, Lost uint64
	// Waits of the owner's attempts from the queue to their start.
	Waits                      uint64
	WaitMean, WaitP50, WaitP95 time.Duration
	waits                      histogram
}

// Report sums up an archive.
type Report struct {
	Site        string
	Scope       Scope
	By          string
	First, Last time.Time // of the ends found; zero = none
	Rows        []Row     // by key
	Total       Row       // from the broker's site's point of view
	Gaps        []Gap
}

// Report sums up what the query selects. An attempt counts whole where it ended.
func (a *Archive) Report(ctx context.Context, q Query, by string) (*Report, error) {
	group, err := q.grouping(by)
	if err != nil {
		return nil, err
	}
	b := reportBuilder{report: Report{Site: a.cfg.Site, Scope: a.cfg.Scope, By: by}, rows: map[string]*Row{}}
	b.report.Gaps, err = a.Scan(ctx, q, func(t *Attempt) error {
		b.add(t, group)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return b.done(), nil
}

// grouping returns what names an attempt's row, nil for by site.
func (q *Query) grouping(by string) (func(*Attempt) string, error) {
	layout := map[string]string{"hour": "2006-01-02T15Z", "day": "2006-01-02", "month": "2006-01"}[by]
	label, ok := strings.CutPrefix(by, "label:")
	switch {
	case by == "site":
		return nil, nil //nolint:nilnil // by site an attempt has two rows
	case by == "user":
		return q.user, nil
	case layout != "":
		return func(t *Attempt) string { return t.Ended.UTC().Format(layout) }, nil
	case ok && label != "":
		return func(t *Attempt) string {
			if v, ok := t.Labels[label]; ok {
				return v
			}
			return NoLabel
		}, nil
	}
	return nil, fmt.Errorf("%w, not %.80q", ErrBadGroup, by)
}

// user names the row of an attempt's user.
func (q *Query) user(t *Attempt) string {
	if q.UserOf == nil {
		return NoLabel
	}
	return cmp.Or(q.UserOf(t.Job), NoLabel)
}

type reportBuilder struct {
	report Report
	rows   map[string]*Row
}

func (b *reportBuilder) row(key string) *Row {
	r := b.rows[key]
	if r == nil && len(b.rows) >= maxRows {
		key = OtherRow
		r = b.rows[key]
	}
	if r == nil {
		r = &Row{Key: key}
		b.rows[key] = r
	}
	return r
}

func (b *reportBuilder) add(t *Attempt, group func(*Attempt) string) {
	if b.report.First.IsZero() || t.Ended.Before(b.report.First) {
		b.report.First = t.Ended
	}
	if t.Ended.After(b.report.Last) {
		b.report.Last = t.Ended
	}
	b.report.Total.countAttempt(t, b.report.Site)
	if group != nil {
		b.row(group(t)).countAttempt(t, b.report.Site)
		return
	}
	b.row(t.Owner()).takeOwner(t)
	if t.Site != "" {
		b.row(t.Site).takeExecutor(t)
	}
}

// countAttempt counts an attempt from a site's point of view.
func (r *Row) countAttempt(t *Attempt, site string) {
	switch {
	case t.Owner() == site && t.Site == site:
		plus(&r.Own, t.CoreMs())
	case t.Owner() == site:
		plus(&r.Used, t.CoreMs())
	case t.Site == site:
		plus(&r.Lent, t.CoreMs())
	default:
		plus(&r.Others, t.CoreMs())
	}
	r.ran(t)
	r.outcome(t)
}

// takeOwner counts an attempt in its owner's row.
func (r *Row) takeOwner(t *Attempt) {
	if t.Owner() == t.Site {
		plus(&r.Own, t.CoreMs())
	} else {
		plus(&r.Used, t.CoreMs())
	}
	r.ran(t)
	r.outcome(t)
}

// takeExecutor counts an attempt in the row of a site that ran it for another.
func (r *Row) takeExecutor(t *Attempt) {
	if t.Owner() == t.Site {
		return
	}
	plus(&r.Lent, t.CoreMs())
	r.ran(t)
}

// ran counts an attempt, if it ran, and what it used.
func (r *Row) ran(t *Attempt) {
	if t.Ran() {
		r.Attempts++
		r.Measured.add(t)
	}
}

// outcome counts ends and waits.
func (r *Row) outcome(t *Attempt) {
	if wait, ok := t.Wait(); ok {
		r.waits.add(wait)
	}
	if !t.Final {
		return
	}
	n := uint64(t.Count)
	r.Tasks += n
	switch t.Outcome {
	case fsm.EndSucceeded:
		r.Succeeded += n
	case fsm.EndFailed:
		r.Failed += n
	case fsm.EndCancelled:
		r.Cancelled += n
	case fsm.EndLost:
		r.Lost += n
	default:
	}
}

// plus adds what is not negative and stops at the greatest number.
func plus(to *int64, v int64) {
	if *to > math.MaxInt64-v {
		*to = math.MaxInt64
		return
	}
	*to += v
}

func (b *reportBuilder) done() *Report {
	for _, r := range slices.SortedFunc(maps.Values(b.rows), func(x, y *Row) int { return cmp.Compare(x.Key, y.Key) }) {
		r.summarize()
		b.report.Rows = append(b.report.Rows, *r)
	}
	b.report.Total.Key = "total"
	b.report.Total.summarize()
	return &b.report
}

func (r *Row) summarize() {
	r.Waits, r.WaitMean, r.WaitP50, r.WaitP95 = r.waits.n, r.waits.mean(), r.waits.quantile(.5), r.waits.quantile(.95)
	r.waits = histogram{}
}
