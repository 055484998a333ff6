// Package problem turns errors into problem documents (RFC 9457): the one place where
// what went wrong gets its status, its stable type and its words. It knows the
// broker's errors and no broker.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Problem is a wire.Problem as handlers and huma return it.
type Problem struct {
	wire.Problem
	hangUp bool // end the connection: there are many
	// Challenge is what a 401 says of how to log in, after "Bearer" in WWW-Authenticate; "" = nothing.
	Challenge string `json:"-"`
}

var (
	_ huma.StatusError       = (*Problem)(nil)
	_ huma.ContentTypeFilter = (*Problem)(nil)
)

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return wire.TypeProblem }

// GetHeaders lets huma send Retry-After too, and how to say who asks.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.RetryAfter != 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", strings.TrimSpace("Bearer "+p.Challenge))
	}
	return h
}

// New makes a problem of the given stable name.
func New(status int, name, title, detail string) *Problem {
	return &Problem{Problem: wire.Problem{
		Type: wire.ProblemPrefix + name, Title: title, Status: status,
		Detail: detail,
	}}
}

// Crowded returns a 503 that also ends its connection: there are too many clients of a kind.
func Crowded(name, title, detail string) *Problem {
	p := New(http.StatusServiceUnavailable, name, title, detail)
	p.RetryAfter, p.hangUp = 10, true
	return p
}

// Problems of an output that a site had: it has removed it, its disk has lost it, or
// cannot read it now.
const (
	OutputGone    = "output-gone"
	OutputDamaged = "output-damaged"
	// OutputUnreadable: it may be there still.
	OutputUnreadable = "output-unreadable"
)

// Problems of files that handlers tell apart.
const (
	UnknownBlob = "unknown-blob"
	WrongHash   = "wrong-hash"
)

// Ended returns the problem for which a request was ended before it was answered, nil if it was not.
func Ended(ctx context.Context) error {
	var p *Problem
	if !errors.As(context.Cause(ctx), &p) {
		return nil
	}
	own := *p // several requests may have ended for it
	return &own
}

// BadField returns a 422 for a field of a JSON body.
func BadField(field, value, reason string) *Problem {
	field = OneLine(field)
	p := New(http.StatusUnprocessableEntity, "invalid-request", "The request is not valid", field+": "+OneLine(reason))
	p.Field, p.Value = field, OneLine(value)
	return p
}

// BadQuery returns a 400 for a query parameter, path or header.
func BadQuery(field, value, reason string) *Problem {
	p := New(http.StatusBadRequest, "invalid-parameter", "A parameter is not valid", field+": "+reason)
	p.Field, p.Value = field, OneLine(value)
	return p
}

// OneLine bounds text that may come from outside.
func OneLine(s string) string {
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

// SetHeaders sets those besides the content type.
func (p *Problem) SetHeaders(h http.Header) {
	for k, v := range p.GetHeaders() {
		h[k] = v
	}
	if p.hangUp {
		h.Set("Connection", "close")
	}
}

// Write sends the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", wire.TypeProblem)
	h.Del("Content-Length")
	p.SetHeaders(h)
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
			return BadQuery(name, "", OneLine(d.Message))
		}
		if err != nil {
			return Of(err)
		}
	}
	return OfStatus(status, msg)
}

// OfStatus names what the router refuses by itself.
func OfStatus(status int, detail string) *Problem {
	switch status {
	case http.StatusNotFound:
		return New(status, "not-found", "No such path", detail)
	case http.StatusMethodNotAllowed:
		return New(status, "method-not-allowed", "The path does not know this method", detail)
	case http.StatusRequestEntityTooLarge:
		return New(status, "too-large", "The body is too large", detail)
	case http.StatusUnsupportedMediaType:
		return New(status, "unsupported-type", "The content type is not supported", detail)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return New(http.StatusBadRequest, "invalid-parameter", "A parameter is not valid", detail)
	}
	return New(status, "internal", http.StatusText(status), detail)
}

func init() { // huma has one error model per process, read at each error
	huma.NewError = humaProblem
}
