package archive

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Formats of an export.
const (
	NDJSON = "ndjson"
	CSV    = "csv"
	SWF    = "swf"
)

// Errors of an export.
var (
	// ErrBadFormat is returned for an unknown format.
	ErrBadFormat = errors.New("format must be ndjson, csv or swf")
	// ErrTooMany: the attempts have to be sorted, and there are too many.
	ErrTooMany = errors.New("too many attempts to be sorted: choose a shorter period")
)

// Export writes what the query selects. NDJSON and CSV are streamed in the order
// of the archive, one attempt a line; SWF is one task a line, sorted by its
// submission, ErrTooMany beyond MaxSorted. It tells of gaps: a line {"gap": …}
// in NDJSON, a comment in SWF, nothing in CSV.
func (a *Archive) Export(ctx context.Context, q Query, format string, w io.Writer) error {
	if a.cfg.Scope == Off {
		return ErrOff
	}
	switch format {
	case NDJSON:
		return a.exportJSON(ctx, q, w)
	case CSV:
		return a.exportCSV(ctx, q, w)
	case SWF:
		return a.exportSWF(ctx, q, w)
	}
	return fmt.Errorf("%w, not %.40q", ErrBadFormat, format)
}

// Line is an attempt in an export.
type Line struct {
	Job       string            `json:"job"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Task      uint32            `json:"task"`
	Count     uint32            `json:"count" doc:"more than 1 for tasks that ended alike without an attempt"`
	Attempt   uint32            `json:"attempt" doc:"from 1; 0 = ended without one, or not known"`
	Token     uint64            `json:"token"`
	Owner     string            `json:"owner"`
	Site      string            `json:"site" doc:"executor"`
	Machine   string            `json:"machine"`
	Home      bool              `json:"home" doc:"its site ran it for itself, outside the log"`
	Outcome   string            `json:"outcome" doc:"empty = not known"`
	Final     bool              `json:"final" doc:"the task ended with it"`
	ExitCode  int32             `json:"exit_code"`
	Signal    int32             `json:"signal"`
	Reason    string            `json:"reason"`
	CPU       json.Number       `json:"cpu" doc:"cores"`
	MemoryMiB int64             `json:"memory_mib"`
	GPU       int64             `json:"gpu"`
	Submitted *time.Time        `json:"submitted"`
	Queued    *time.Time        `json:"queued"`
	Assigned  *time.Time        `json:"assigned"`
	Started   *time.Time        `json:"started"`
	Ended     *time.Time        `json:"ended"`
	QueuedMs  *int64            `json:"queued_ms" doc:"log time, as the three below; null at home"`
	AssignMs  *int64            `json:"assigned_ms"`
	StartedMs *int64            `json:"started_ms"`
	EndedMs   *int64            `json:"ended_ms"`
	WaitMs    *int64            `json:"wait_ms" doc:"from the queue to the start"`
	ChargedMs int64             `json:"charged_ms" doc:"run that the ledger charged"`
	PeakBytes *int64            `json:"peak_memory_bytes" doc:"greatest memory, as its site measured it; null = not known, as the two below"`
	UserMs    *int64            `json:"cpu_user_ms" doc:"processor time in its own code"`
	SystemMs  *int64            `json:"cpu_system_ms" doc:"processor time in the kernel for it"`
	InBytes   int64             `json:"in_bytes" doc:"of the files that it was given"`
	OutBytes  int64             `json:"out_bytes" doc:"of the files that it has left"`
	Measured  string            `json:"measured_by" doc:"unknown, cgroup (all of it), rusage (processes that were waited for; of memory the largest one), container-engine or kubernetes"`
	User      string            `json:"user,omitempty" doc:"whose the job is, with users=true and if it is known"`
	Entry     uint64            `json:"entry" doc:"of the log, that told of its end"`
}

// LineOf returns an attempt as a line.
func LineOf(t *Attempt) Line {
	l := Line{
		Job: t.Job.String(), Name: t.Name, Labels: t.Labels, Task: t.Task, Count: t.Count, Attempt: t.Number,
		Token: t.Token,
		Owner: t.Owner(), Site: t.Site, Machine: t.Machine, Home: t.Home, Outcome: t.Outcome.String(), Final: t.Final,
		ExitCode: t.ExitCode, Signal: t.Signal, Reason: t.Reason, CPU: cores(t.Need.MilliCPU), MemoryMiB: t.Need.MemMiB,
		GPU:       t.Need.GPU,
		Submitted: date(t.Submitted), Queued: date(t.Queued), Assigned: date(t.Assigned), Started: date(t.Started),
		Ended:    date(t.Ended),
		QueuedMs: known(t.LogMs(t.Queued)), AssignMs: known(t.LogMs(t.Assigned)), StartedMs: known(t.LogMs(t.Started)),
		EndedMs: known(t.EndedMs), ChargedMs: t.ChargedMs, Entry: t.Index,
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if wait, ok := t.Wait(); ok {
		l.WaitMs = known(wait.Milliseconds())
	}
	l.measured(&t.Measured)
	return l
}

// lineOf returns an attempt as a line, with its user if these are asked for.
func (q *Query) lineOf(t *Attempt) Line {
	l := LineOf(t)
	if q.Users && q.UserOf != nil {
		l.User = q.UserOf(t.Job)
	}
	return l
}

func (l *Line) measured(m *command.Measured) {
	l.InBytes, l.OutBytes = m.InBytes, m.OutBytes
	if l.Measured = m.Source.String(); m.PeakBytes > 0 {
		l.PeakBytes = &m.PeakBytes
	}
	if m.UserMs > 0 || m.SystemMs > 0 {
		l.UserMs, l.SystemMs = &m.UserMs, &m.SystemMs
	}
}

// cores writes milli-cores as cores.
func cores(milli int64) json.Number {
	out := strconv.FormatInt(milli/1000, 10)
	if rest := milli % 1000; rest != 0 {
		out += "." + strings.TrimRight(fmt.Sprintf("%03d", rest), "0")
	}
	return json.Number(out)
}

func date(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func known(ms int64) *int64 {
	if ms < 0 {
		return nil
	}
	return &ms
}

// GapLine tells of a gap in an export or a report.
type GapLine struct {
	FromEntry uint64     `json:"from_entry"`
	ToEntry   uint64     `json:"to_entry" doc:"entries (from, to] are missing; 0 = not known"`
	Since     *time.Time `json:"since"`
	Until     *time.Time `json:"until"`
	Reason    string     `json:"reason"`
}

// GapLineOf returns a gap as a line.
func GapLineOf(g *Gap) GapLine {
	return GapLine{FromEntry: g.From, ToEntry: g.To, Since: date(g.Since), Until: date(g.Until), Reason: g.Reason}
}

func (a *Archive) exportJSON(ctx context.Context, q Query, w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	gaps, err := a.Scan(ctx, q, func(t *Attempt) error { return enc.Encode(q.lineOf(t)) })
	for i := 0; i < len(gaps) && err == nil; i++ {
		err = enc.Encode(map[string]GapLine{"gap": GapLineOf(&gaps[i])})
	}
	return exported(err, out.Flush())
}

func exported(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("export archive: %w", err)
	}
	return nil
}

// columns of a CSV export, in the order of row.
var columns = []string{
	"job", "name", "labels", "task", "count", "attempt", "token", "owner", "site", "machine", "home", "outcome", "final",
	"exit_code", "signal", "reason", "cpu", "memory_mib", "gpu", "submitted", "queued", "assigned", "started", "ended",
	"queued_ms", "assigned_ms", "started_ms", "ended_ms", "wait_ms", "charged_ms",
	"peak_memory_bytes", "cpu_user_ms", "cpu_system_ms", "in_bytes", "out_bytes", "measured_by", "entry",
}

// withUser adds the column of users to a row, before that of the entry.
func (q *Query) withUser(row []string, user string) []string {
	if !q.Users {
		return row
	}
	last := len(row) - 1
	return append(slices.Clone(row[:last]), user, row[last])
}

func (a *Archive) exportCSV(ctx context.Context, q Query, w io.Writer) error {
	out := csv.NewWriter(w)
	err := out.Write(q.withUser(columns, "user"))
	if err == nil {
		_, err = a.Scan(ctx, q, func(t *Attempt) error {
			l := q.lineOf(t)
			return out.Write(q.withUser(l.row(), plain(l.User)))
		})
	}
	out.Flush()
	return exported(err, out.Error())
}

func (l *Line) row() []string {
	whole := func(p *int64) string {
		if p == nil {
			return ""
		}
		return strconv.FormatInt(*p, 10)
	}
	day := func(p *time.Time) string {
		if p == nil {
			return ""
		}
		return p.Format("2006-01-02T15:04:05.000Z07:00")
	}
	return []string{
		l.Job, plain(l.Name), plain(labelsText(l.Labels)), fmt.Sprint(l.Task), fmt.Sprint(l.Count),
		fmt.Sprint(l.Attempt), fmt.Sprint(l.Token),
		l.Owner, l.Site, plain(l.Machine), strconv.FormatBool(l.Home), l.Outcome, strconv.FormatBool(l.Final),
		fmt.Sprint(l.ExitCode), fmt.Sprint(l.Signal), plain(l.Reason), l.CPU.String(), fmt.Sprint(l.MemoryMiB),
		fmt.Sprint(l.GPU),
		day(l.Submitted), day(l.Queued), day(l.Assigned), day(l.Started), day(l.Ended),
		whole(l.QueuedMs), whole(l.AssignMs), whole(l.StartedMs), whole(l.EndedMs), whole(l.WaitMs),
		fmt.Sprint(l.ChargedMs), whole(l.PeakBytes), whole(l.UserMs), whole(l.SystemMs),
		fmt.Sprint(l.InBytes), fmt.Sprint(l.OutBytes), l.Measured, fmt.Sprint(l.Entry),
	}
}

// plain keeps a spreadsheet from taking a user's text for a formula.
func plain(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func labelsText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ";")
}
