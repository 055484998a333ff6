package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/tes"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/audit"
)

// Audit is the site's record of who did what.
type Audit interface {
	// Append adds an entry; with durable it returns once a disk has it.
	Append(e audit.Entry, durable bool) error
	Read(q audit.Query) ([]audit.Entry, error)
}

var _ Audit = (*audit.Log)(nil)

// maxTargets is how many targets an entry names.
const maxTargets = 100

// auditing writes the record and answers from it.
type auditing struct {
	record Audit // nil = none is kept
	api    *rest.API
	log    zerolog.Logger
	// reading has one while somebody reads: each reader may go through all files.
	reading  chan struct{}
	refusals refusals
}

func newAuditing(record Audit, log zerolog.Logger) *auditing {
	a := &auditing{record: record, log: log, reading: make(chan struct{}, 1)}
	a.refusals.write = func(e audit.Entry) { a.append(e, false) }
	return a
}

// register adds GET /v1/audit.
func (a *auditing) register() {
	a.api.Handle(huma.Operation{
		OperationID: "audit", Method: http.MethodGet, Path: "/v1/audit", Summary: "Who did what at this site",
		Description: "The newest requests first that changed something, or were to, and came with a valid token, " +
			"as far as they are kept. For the site's operator.",
		Parameters: []*huma.Param{
			rest.QueryParam("who", huma.TypeString, "only of this user, or about this job, member or site"),
			rest.QueryParam("limit", huma.TypeInteger, "1 to 1000, default 100"),
		},
		Responses: a.api.Responses(http.StatusOK, wire.TypeJSON, a.api.Schema(wire.List[wire.AuditEntry]{}),
			400, 403, 404, 429),
	}, a.read)
}

func (a *auditing) read(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	limit, err := rest.QueryUint(r, "limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	list, err := a.entries(audit.Query{Who: r.URL.Query().Get("who"), Limit: int(limit)})
	if err != nil {
		return err
	}
	out := wire.List[wire.AuditEntry]{Items: make([]wire.AuditEntry, 0, len(list))}
	for i := range list {
		out.Items = append(out.Items, wire.AuditEntry(list[i]))
	}
	return rest.WriteJSON(w, http.StatusOK, out)
}

// entries reads the record, one reader at a time.
func (a *auditing) entries(q audit.Query) ([]audit.Entry, error) {
	if a.record == nil {
		return nil, problem.New(http.StatusNotFound, "audit-off", "This broker keeps no record", "it was started without one")
	}
	select {
	case a.reading <- struct{}{}:
		defer func() { <-a.reading }()
	default:
		p := problem.New(http.StatusTooManyRequests, "audit-busy", "The record is being read", "another reader is under way; ask again soon")
		p.RetryAfter = 1
		return nil, p
	}
	return a.record.Read(q)
}

// note records a request that changes something, before its answer goes out. What only an operator may do is on a disk
// by then; what users do, many thousand times a second, a second later.
func (a *auditing) note(r *http.Request, status int, answered http.Header) {
	e, ok := a.entry(r, status)
	if !ok {
		return
	}
	e.Targets = targetsOf(r, answered)
	if status >= http.StatusBadRequest {
		a.noteRefusal(r, e)
		return
	}
	a.append(e, auth.Needed(r) == access.Operator)
}

// noteLines records that lines of a request were refused that is answered line by line: its status does not say so.
func (a *auditing) noteLines(r *http.Request, n *rest.Note) {
	if n.Lines == 0 {
		return
	}
	if e, ok := a.entry(r, http.StatusAccepted); ok {
		a.noteRefusal(r, e)
	}
}

// noteRole records that the role of a valid token did not suffice: whoever tries what is the operator's is told of.
func (a *auditing) noteRole(r *http.Request, err error) {
	var small *auth.RoleError
	if !errors.As(err, &small) {
		return
	}
	note := new(rest.Note)
	note.Refuse(&small.Problem.Problem)
	r = r.WithContext(rest.WithNote(node.WithAsker(r.Context(), small.Who), note))
	if e, ok := a.entry(r, small.Problem.Status); ok {
		e.Role, e.Targets = problem.OneLine(string(small.Role)), targetsOf(r, nil)
		a.noteRefusal(r, e)
	}
}

// noteRefusal records a refusal, with what was asked: nothing else tells it.
func (a *auditing) noteRefusal(r *http.Request, e audit.Entry) {
	n := rest.NoteOf(r.Context())
	e.Why = problem.OneLine(n.Why)
	if !a.refusals.admit("of "+sharer(r.Context()), e) {
		return
	}
	if n.Asked != nil {
		e.Asked = n.Asked()
	}
	a.append(e, auth.Needed(r) == access.Operator)
}

// entry returns what is recorded of each request, if it is one to record.
func (a *auditing) entry(r *http.Request, status int) (audit.Entry, bool) {
	who := node.AskerOf(r.Context())
	if a.record == nil || who == (node.Asker{}) || who.Site != "" || auth.Reads(r) || auth.OwnBytes(r.URL.Path) {
		return audit.Entry{}, false
	}
	role := access.User
	if who.Operator {
		role = access.Operator
	}
	return audit.Entry{
		Time: time.Now().UTC(), User: who.User, Role: string(role), Token: who.Token,
		Action: problem.OneLine(r.Method + " " + r.URL.Path), Status: status,
	}, true
}

func (a *auditing) append(e audit.Entry, durable bool) {
	if err := a.record.Append(e, durable); err != nil {
		a.log.Error().Err(err).Msg("a request is missing in the audit record; see to the disk")
	}
}

// targetsOf returns the jobs and names in a request's path and query, or by what it selects jobs, and the job that it
// became.
func targetsOf(r *http.Request, answered http.Header) []string {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	if task, of := strings.CutPrefix(path, tes.Root); of {
		path = strings.TrimSuffix(task, ":cancel")
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	out := parts[1:min(len(parts), 2)]
	if r.URL.RawQuery != "" {
		named := r.URL.Query()
		out = append(out, slices.Concat(named["job"], named["user"], named["label"])...)
	}
	if at, _, _ := strings.Cut(answered.Get("Location"), "?"); at != "" {
		out = append(out, at[strings.LastIndexByte(at, '/')+1:])
	}
	out = out[:min(len(out), maxTargets)]
	for i := range out {
		out[i] = problem.OneLine(out[i])
	}
	return out
}
