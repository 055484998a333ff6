package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// problem is a wire.Problem as handlers and huma return it.
type problem struct {
	wire.Problem
	hangUp bool // end the connection: there are many
}

var (
	_ huma.StatusError       = (*problem)(nil)
	_ huma.ContentTypeFilter = (*problem)(nil)
)

// GetStatus implements huma.StatusError.
func (p *problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *problem) ContentType(string) string { return wire.TypeProblem }

// GetHeaders lets huma send Retry-After too.
func (p *problem) GetHeaders() http.Header {
	if p.RetryAfter == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(p.RetryAfter)}}
}

// newProblem makes a problem of the given stable name.
func newProblem(status int, name, title, detail string) *problem {
	return &problem{Problem: wire.Problem{Type: wire.ProblemPrefix + name, Title: title, Status: status, Detail: detail}}
}

// Problems of an output that a site had: it has removed it, its disk has lost it, or
// cannot read it now.
const (
	outputGone    = "output-gone"
	outputDamaged = "output-damaged"
	// outputUnreadable: it may be there still.
	outputUnreadable = "output-unreadable"
)

// errorTable is the one place where errors become statuses.
var errorTable = []struct {
	err         error
	status      int
	name, title string
	retryAfter  int // seconds
}{
	{node.ErrBadCursor, http.StatusBadRequest, "bad-cursor", "The cursor is not valid here", 0},
	{command.ErrBadID, http.StatusNotFound, "not-found", "No such job", 0},
	{node.ErrOutputGone, http.StatusNotFound, outputGone, "The output is gone", 0},
	{node.ErrNotFound, http.StatusNotFound, "not-found", "Not found", 0},
	{node.ErrOutputDamaged, http.StatusGone, outputDamaged, "The output is damaged", 0},
	{node.ErrOutputUnreadable, http.StatusServiceUnavailable, outputUnreadable, "The output cannot be read now", 10},
	{node.ErrEnded, http.StatusConflict, "already-ended", "The job has ended", 0},
	{node.ErrNothing, http.StatusConflict, "nothing-to-run", "There is nothing to run again", 0},
	{node.ErrLeaving, http.StatusConflict, "leaving", "The site is leaving", 0},
	{node.ErrKeyReused, http.StatusUnprocessableEntity, "key-reused", "The idempotency key belongs to another job", 0},
	{node.ErrUnfit, http.StatusUnprocessableEntity, "unfit", "No present site could run it", 0},
	{node.ErrBadParams, http.StatusUnprocessableEntity, "invalid-policy", "The policy is not valid", 0},
	{node.ErrFull, http.StatusTooManyRequests, "queue-full", "The queue is full", 5},
	{node.ErrKeysFull, http.StatusServiceUnavailable, "keys-full", "Too many idempotency keys are held", 60},
	{node.ErrStorageFull, http.StatusServiceUnavailable, "storage-full", "The broker's disk is full", 10},
	{node.ErrStale, http.StatusServiceUnavailable, "stale", "The broker's state is too old", 2},
	{node.ErrNoQuorum, http.StatusServiceUnavailable, "no-quorum", "The federation has no quorum now", 2},
	{node.ErrNotReady, http.StatusServiceUnavailable, "not-ready", "The broker is not ready", 1},
	{node.ErrStopping, http.StatusServiceUnavailable, "stopping", "The broker is stopping", 5},
	{node.ErrUnreachable, http.StatusServiceUnavailable, "site-unreachable", "A site cannot be reached", 5},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "It took too long", 2},
	{context.Canceled, http.StatusServiceUnavailable, "cancelled", "The request was abandoned", 1},
}

// toldProblem returns a problem as another broker words it, nil if it is none that an
// answer can be: what comes from outside chooses no status but an error's.
func toldProblem(p *wire.Problem) *problem {
	if p.Status < http.StatusBadRequest || p.Status > 599 || !strings.HasPrefix(p.Type, wire.ProblemPrefix) {
		return nil
	}
	told := *p
	for _, text := range []*string{&told.Type, &told.Title, &told.Detail, &told.Field, &told.Value, &told.Quota} {
		*text = oneLine(*text)
	}
	return &problem{Problem: told}
}

// problemOf turns any error into a problem. An error that is in no table is
// this broker's fault: its text goes to the log, not to the client.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var spec *jobspec.SpecError
	if errors.As(err, &spec) {
		return specProblem(spec)
	}
	var elsewhere *node.ElsewhereError
	if errors.As(err, &elsewhere) {
		return unreachable(elsewhere, "its address is not known")
	}
	var quota *node.QuotaError
	if errors.As(err, &quota) {
		return quotaProblem(quota)
	}
	for _, row := range errorTable {
		if errors.Is(err, row.err) {
			p = newProblem(row.status, row.name, row.title, oneLine(err.Error()))
			p.RetryAfter = row.retryAfter
			var param *node.ParamError
			if errors.As(err, &param) {
				p.Field, p.Value = param.Field, oneLine(param.Value)
			}
			return p
		}
	}
	return newProblem(http.StatusInternalServerError, "internal", "The broker failed", "the reason is in its log")
}

func specProblem(e *jobspec.SpecError) *problem {
	p := newProblem(http.StatusUnprocessableEntity, "invalid-job", "The job is not valid", e.Error())
	if e.Malformed {
		p = newProblem(http.StatusBadRequest, "malformed", "The body is not a JSON document", e.Error())
	}
	p.Field, p.Value = e.Field, e.Value
	return p
}

// quotaProblem tells which quota it was, and of what.
func quotaProblem(e *node.QuotaError) *problem {
	p := newProblem(http.StatusTooManyRequests, "quota", "The site's quota is used up", oneLine(e.Error()))
	p.Quota, p.Used, p.Limit, p.Need, p.RetryAfter = e.Quota, &e.Used, &e.Limit, &e.Need, 5
	return p
}

// unreachable returns "owner-unreachable" or "executor-unreachable".
func unreachable(e *node.ElsewhereError, why string) *problem {
	role := e.Role
	if role != "executor" {
		role = "owner"
	}
	p := newProblem(http.StatusServiceUnavailable, role+"-unreachable", "The "+role+"'s site cannot be reached",
		e.Site+": "+oneLine(why)+"; ask again when it is back")
	p.RetryAfter = 5
	return p
}

// badQuery returns a 400 for a query parameter, path or header.
func badQuery(field, value, reason string) *problem {
	p := newProblem(http.StatusBadRequest, "invalid-parameter", "A parameter is not valid", field+": "+reason)
	p.Field, p.Value = field, oneLine(value)
	return p
}

// oneLine bounds text that may come from outside.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}

// setHeaders sets those besides the content type.
func (p *problem) setHeaders(h http.Header) {
	for k, v := range p.GetHeaders() {
		h[k] = v
	}
	if p.hangUp {
		h.Set("Connection", "close")
	}
}

// write sends the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", wire.TypeProblem)
	h.Del("Content-Length")
	p.setHeaders(h)
	body, err := json.Marshal(p.Problem)
	if err != nil {
		body = []byte("{}")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone: nothing to be done
}

// humaProblem replaces huma's error model, so that every error of the API has
// one form. Only queries are parsed by huma here, so a validation error is 400.
func humaProblem(status int, msg string, errs ...error) huma.StatusError {
	for _, err := range errs {
		var detail huma.ErrorDetailer
		if errors.As(err, &detail) {
			d := detail.ErrorDetail()
			name := strings.TrimPrefix(d.Location, "query.")
			return badQuery(name, "", oneLine(d.Message))
		}
		if err != nil {
			return problemOf(err)
		}
	}
	return statusProblem(status, msg)
}

// statusProblem names what the router refuses by itself.
func statusProblem(status int, detail string) *problem {
	switch status {
	case http.StatusNotFound:
		return newProblem(status, "not-found", "No such path", detail)
	case http.StatusMethodNotAllowed:
		return newProblem(status, "method-not-allowed", "The path does not know this method", detail)
	case http.StatusRequestEntityTooLarge:
		return newProblem(status, "too-large", "The body is too large", detail)
	case http.StatusUnsupportedMediaType:
		return newProblem(status, "unsupported-type", "The content type is not supported", detail)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return newProblem(http.StatusBadRequest, "invalid-parameter", "A parameter is not valid", detail)
	}
	return newProblem(status, "internal", http.StatusText(status), detail)
}

func init() { // huma has one error model per process, read at each error
	huma.NewError = humaProblem
}
