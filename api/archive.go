package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/archive"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Archive is a broker's memory beyond the state's retention.
type Archive interface {
	Report(ctx context.Context, q archive.Query, by string) (*archive.Report, error)
	Export(ctx context.Context, q archive.Query, format string, w io.Writer) error
	Usage(ctx context.Context, q archive.Query) (*archive.Usage, error)
}

var _ Archive = (*archive.Archive)(nil)

// maxArchiveReads bounds how many reports and exports go on at a time: each
// reads up to the whole archive.
const maxArchiveReads = 2

// exportTypes are the formats with their content types.
var exportTypes = map[string]string{archive.NDJSON: wire.TypeNDJSON, archive.CSV: "text/csv; charset=utf-8", archive.SWF: "text/plain; charset=utf-8"}

// reports answers from the broker's archive.
type reports struct {
	archive Archive // nil = none is kept
	// visible selects the jobs of which who asks may read; nil = all.
	visible func(context.Context) func(command.JobID) bool
	// userOf returns the user of a job of this site.
	userOf func(command.JobID) string
	api    *rest.API
	stop   *transport.Stop
	log    zerolog.Logger
	// underWay has one for each report or export that goes on.
	underWay chan struct{}
}

// register adds the operations.
func (p *reports) register() {
	period := []*huma.Param{
		rest.QueryParam("since", huma.TypeString, "ended at or after: 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, such as 36h or 7d"),
		rest.QueryParam("until", huma.TypeString, "ended before, alike"),
		rest.QueryParam("site", huma.TypeString, "only with this owner or executor"),
		rest.QueryParam("label", huma.TypeString, "KEY=VALUE"),
	}
	p.api.Handle(huma.Operation{
		OperationID: "report", Method: http.MethodGet, Path: "/v1/report", Summary: "Core-hours lent and used, tasks and waits",
		Description: "Of the asked broker's archive: what its site owned or ran, unless its archive.scope is all. An attempt counts whole where it ended. By user are this site's jobs alone: a user sees the own row, the operator all; (none) are the site's own jobs, other sites', and those whose user is not known any more.",
		Parameters:  append([]*huma.Param{rest.QueryParam("by", huma.TypeString, "site (default), user, hour, day, month or label:KEY")}, period...),
		Responses:   p.api.Responses(http.StatusOK, wire.TypeJSON, p.api.Schema(wire.Report{}), 400, 404, 429),
	}, p.report)
	p.api.Handle(huma.Operation{
		OperationID: "archive", Method: http.MethodGet, Path: "/v1/archive", Summary: "Ended attempts, streamed",
		Description: "One attempt a line in nearly the order of their ends, in NDJSON with a line {\"gap\": …} for each stretch that is missing; or in the Standard Workload Format, one task a line by submission.",
		Parameters: append([]*huma.Param{
			rest.QueryParam("format", huma.TypeString, "ndjson (default), csv or swf"),
			rest.QueryParam("users", huma.TypeBoolean, "true: ndjson and csv say whose the jobs are, of this site's that who asks may see"),
		}, period...),
		Responses: p.api.Responses(http.StatusOK, wire.TypeNDJSON, p.api.Schema(archive.Line{}), 400, 404, 422, 429),
	}, p.export)
	p.api.Handle(huma.Operation{
		OperationID: "job-usage", Method: http.MethodGet, Path: "/v1/jobs/{id}/usage", Summary: "What a job's attempts have used",
		Description: "Processor time and memory beside what was taken of machines, of the attempts that have ended, as the sites measured them that ran them. Of the asked broker's archive: all attempts of its site's jobs, of others' those that ran there. A job of which there is nothing has zeros.",
		Parameters:  []*huma.Param{rest.IDParam()},
		Responses:   p.api.Responses(http.StatusOK, wire.TypeJSON, p.api.Schema(wire.JobUsage{}), 404, 429),
	}, p.usage)
}

func (p *reports) report(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	q, done, err := p.archiveQuery(r)
	if err != nil {
		return err
	}
	defer done()
	by := r.URL.Query().Get("by")
	if by == "" {
		by = "site"
	}
	ctx, cancel := p.stop.Until(r.Context())
	defer cancel()
	report, err := p.archive.Report(ctx, q, by)
	if err != nil {
		return archiveProblem(err)
	}
	return rest.WriteJSON(w, http.StatusOK, reportOf(report))
}

func (p *reports) export(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	format := r.URL.Query().Get("format")
	if format == "" {
		format = archive.NDJSON
	}
	kind, ok := exportTypes[format]
	if !ok {
		return problem.BadQuery("format", format, "must be ndjson, csv or swf")
	}
	users, err := withUsers(r, format)
	if err != nil {
		return err
	}
	q, done, err := p.archiveQuery(r)
	if err != nil {
		return err
	}
	defer done()
	q.Users = users
	ctx, cancel := p.stop.Until(r.Context())
	defer cancel()
	out := &lateWriter{w: w, kind: kind}
	err = p.archive.Export(ctx, q, format, out)
	switch {
	case err == nil:
		out.beginAnswer() // an empty export is one, too
		return nil
	case !out.begun:
		return archiveProblem(err)
	}
	if r.Context().Err() == nil {
		p.log.Warn().Err(err).Msg("export broke off")
	}
	panic(http.ErrAbortHandler) // a cut connection: the client must not take it for the whole
}

// withUsers reads whether an export is to name users.
func withUsers(r *http.Request, format string) (bool, error) {
	if !r.URL.Query().Has("users") {
		return false, nil
	}
	users, err := rest.QueryBool(r, "users")
	if err == nil && users && format == archive.SWF {
		return false, problem.BadQuery("users", "true", "goes with ndjson and csv alone")
	}
	return users, err
}

// lateWriter answers 200 with the first byte: until then there may be a problem.
type lateWriter struct {
	w     http.ResponseWriter
	kind  string
	begun bool
}

func (l *lateWriter) beginAnswer() {
	if l.begun {
		return
	}
	l.begun = true
	h := l.w.Header()
	h.Set("Content-Type", l.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	l.w.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (l *lateWriter) Write(b []byte) (int, error) {
	l.beginAnswer()
	return l.w.Write(b)
}

// archiveQuery reads what both operations share, and takes a place among the
// reads under way until done is called.
func (p *reports) archiveQuery(r *http.Request) (q archive.Query, done func(), err error) {
	if p.archive == nil {
		return q, nil, archiveProblem(archive.ErrOff)
	}
	values, now := r.URL.Query(), time.Now()
	q.Visible, q.UserOf = p.visible(r.Context()), p.userOf
	if q.Since, err = instant("since", values.Get("since"), now); err != nil {
		return q, nil, err
	}
	if q.Until, err = instant("until", values.Get("until"), now); err != nil {
		return q, nil, err
	}
	if q.Site = values.Get("site"); q.Site != "" && !command.ValidSite(q.Site) {
		return q, nil, problem.BadQuery("site", q.Site, "is not a site's name")
	}
	if label := values.Get("label"); label != "" {
		if q.Labels, err = rest.Labels([]string{label}); err != nil {
			return q, nil, err
		}
	}
	done, err = p.enter()
	return q, done, err
}

// enter takes a place among the reads under way until done is called.
func (p *reports) enter() (done func(), err error) {
	select {
	case p.underWay <- struct{}{}:
		return func() { <-p.underWay }, nil
	default:
		p := problem.New(http.StatusTooManyRequests, "archive-busy", "The archive is being read", "two reports or exports are under way; ask again soon")
		p.RetryAfter = 2
		return nil, p
	}
}

// instant reads a date, a moment, or how long ago; "" is the zero time.
func instant(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if ago, err := jobspec.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, problem.BadQuery(name, text, "must be a date (2026-01-31), a moment (2026-01-31T12:00:00Z), or how long ago (36h, 7d, 2w)")
}

// archiveProblem words what the archive refuses.
func archiveProblem(err error) error {
	switch {
	case errors.Is(err, archive.ErrOff):
		return problem.New(http.StatusNotFound, "archive-off", "This broker keeps no archive", problem.OneLine(err.Error()))
	case errors.Is(err, archive.ErrBadGroup):
		return problem.BadQuery("by", "", "must be site, user, hour, day, month or label:KEY")
	case errors.Is(err, archive.ErrTooMany):
		return problem.New(http.StatusUnprocessableEntity, "too-many", "There are too many attempts for this format", problem.OneLine(err.Error())+", with since and until")
	}
	return err
}

// coreHours turns milli-cores times milliseconds into core-hours.
func coreHours(coreMs int64) float64 { return float64(coreMs) / (1000 * 3600 * 1000) }

func reportOf(r *archive.Report) wire.Report {
	out := wire.Report{
		Site: r.Site, Scope: string(r.Scope), By: r.By, First: form.Moment(r.First), Last: form.Moment(r.Last),
		Rows: make([]wire.ReportRow, 0, len(r.Rows)), Total: reportRowOf(&r.Total), Gaps: gapsOf(r.Gaps),
	}
	for i := range r.Rows {
		out.Rows = append(out.Rows, reportRowOf(&r.Rows[i]))
	}
	return out
}

func gapsOf(gaps []archive.Gap) []wire.ReportGap {
	out := make([]wire.ReportGap, 0, len(gaps))
	for i := range gaps {
		g := &gaps[i]
		out = append(out, wire.ReportGap{
			FromEntry: g.From, ToEntry: g.To, Since: form.Moment(g.Since),
			Until: form.Moment(g.Until), Reason: g.Reason,
		})
	}
	return out
}

func reportRowOf(r *archive.Row) wire.ReportRow {
	out := wire.ReportRow{
		Key: r.Key, Own: coreHours(r.Own), Lent: coreHours(r.Lent), Used: coreHours(r.Used),
		Others: coreHours(r.Others), Attempts: r.Attempts,
		Tasks: r.Tasks, Succeeded: r.Succeeded, Failed: r.Failed, Cancelled: r.Cancelled, Lost: r.Lost,
		Usage: reportUsageOf(&r.Measured), Wait: wire.ReportWait{Count: r.Waits},
	}
	if r.Waits > 0 {
		mean, p50, p95 := r.WaitMean.Seconds(), r.WaitP50.Seconds(), r.WaitP95.Seconds()
		out.Wait.Mean, out.Wait.P50, out.Wait.P95 = &mean, &p50, &p95
	}
	return out
}

func reportUsageOf(u *archive.Used) wire.ReportUsage {
	out := wire.ReportUsage{CPUHours: cpuHours(u), InBytes: u.InBytes, OutBytes: u.OutBytes}
	if share, ok := u.CPUShare(); ok {
		out.Efficiency = &share
	}
	if share, ok := u.MemoryShare(); ok {
		out.Memory = &share
	}
	if u.PeakBytes > 0 {
		out.PeakBytes = &u.PeakBytes
	}
	return out
}
