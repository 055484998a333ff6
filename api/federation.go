package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// answer is huma's form of a JSON answer.
type answer[T any] struct{ Body T }

type jobsInput struct {
	BlockingQuery
	State  string   `query:"state" enum:"queued,running,succeeded,failed,cancelled,lost,withdrawn" doc:"only jobs in this state"`
	Site   string   `query:"site" doc:"only jobs of this owner"`
	Label  []string `query:"label,explode" doc:"KEY=VALUE, may be repeated"`
	Name   string   `query:"name" maxLength:"200" doc:"only jobs whose name has this part, whatever its case"`
	Limit  int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Cursor string   `query:"cursor" maxLength:"200" doc:"next of the page before"`
}

type statusInput struct {
	BlockingQuery
	Hash bool `query:"hash" default:"true" doc:"compute the state's hash; false saves the time"`
}

type quotaInput struct {
	BlockingQuery
	All bool `query:"all" doc:"of all sites"`
}

// humaOps registers the plain reads, whose queries huma parses.
func (s *Server) humaOps() {
	read(s, "jobs", "/v1/jobs", "Jobs, newest first; home jobs (durability site) are listed by their own site's broker only", current(s, s.jobs))
	read(s, "sites", "/v1/sites", "The sites of the federation", current(s, func(_ context.Context, _ *BlockingQuery) (*answer[wire.List[wire.Site]], error) {
		out := listOf(s.broker.Sites(), siteOf)
		s.withContacts(out.Body.Items)
		return out, nil
	}))
	read(s, "queue", "/v1/queue", "What waits, per owner, with the priorities now", current(s, func(_ context.Context, _ *BlockingQuery) (*answer[wire.List[wire.Queue]], error) {
		return listOf(s.broker.Queue(), queueOf), nil
	}))
	read(s, "quota", "/v1/quota", "What this site uses of its quotas, or each site", current(s, s.quotas))
	read(s, "ledger", "/v1/ledger", "Who used how much of whose machines", current(s, func(_ context.Context, _ *BlockingQuery) (*answer[wire.Ledger], error) {
		return &answer[wire.Ledger]{ledgerOf(s.broker.Ledger())}, nil
	}))
	read(s, "policy", "/v1/policy", "The federation's policy", current(s, func(_ context.Context, _ *FreshQuery) (*answer[wire.Policy], error) {
		return &answer[wire.Policy]{s.policy()}, nil
	}))
	read(s, "status", "/v1/status", "This broker's view of itself and the federation", func(ctx context.Context, in *statusInput) (*answer[wire.Status], error) {
		out := &answer[wire.Status]{statusOf(s.broker.Status(in.Hash), s.drainOf(ctx), in.Hash)}
		out.Body.Unreached = s.unreached()
		return out, nil
	})
}

// current refuses a read of the replicated state that the broker has not
// rebuilt since its start: what is not there may well be.
func current[I, O any](s *Server, h func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := s.broker.Current(); err != nil {
			return nil, err
		}
		return h(ctx, in)
	}
}

// read registers a plain read: it may block, or else be refused what is too old.
func read[I, O any](s *Server, id, path, summary string, h func(context.Context, *I) (*O, error)) {
	before := func(w http.ResponseWriter, r *http.Request) error { return s.reads.await(w, r, fsm.JobID{}) }
	if _, plain := any(new(I)).(*FreshQuery); plain {
		before = func(_ http.ResponseWriter, r *http.Request) error { return s.reads.requireFresh(r) }
	}
	rest.Read(s.api, id, path, summary, before, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if body, ok := any(out).(interface{ freshen(wire.Freshness) }); ok && err == nil {
			body.freshen(freshness(ctx))
		}
		return out, err
	})
}

func listOf[T, W any](items []T, form func(T) W) *answer[wire.List[W]] {
	out := &answer[wire.List[W]]{}
	out.Body.Items = make([]W, 0, len(items))
	for _, item := range items {
		out.Body.Items = append(out.Body.Items, form(item))
	}
	return out
}

func (s *Server) jobs(ctx context.Context, in *jobsInput) (*answer[wire.List[wire.Job]], error) {
	q := node.JobQuery{State: in.State, Site: in.Site, Name: strings.ToLower(in.Name), Limit: in.Limit, Cursor: in.Cursor}
	if q.Site != "" && !fsm.ValidSite(q.Site) {
		return nil, problem.BadQuery("site", q.Site, "is not a site's name")
	}
	var err error
	if q.Labels, err = rest.Labels(in.Label); err != nil {
		return nil, err
	}
	page, err := s.broker.Jobs(ctx, q)
	if err != nil {
		return nil, err
	}
	out := listOf(page.Items, jobOf)
	out.Body.Next = page.Next
	return out, nil
}

// quotas are this site's, or all sites'.
func (s *Server) quotas(_ context.Context, in *quotaInput) (*answer[wire.List[wire.SiteQuotas]], error) {
	all := s.broker.Quotas()
	if !in.All {
		all = slices.DeleteFunc(all, func(v fsm.QuotaView) bool { return v.Site != s.broker.Site() })
	}
	return listOf(all, quotasOf), nil
}

// policy is the federation's.
func (s *Server) policy() wire.Policy { return policyOf(s.broker.Params(), len(s.broker.Sites())) }

// setPolicy reads the fields given on top of the policy as it is, so that a
// client may send what it wants to change only.
func (s *Server) setPolicy(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	if err := rest.ContentType(r, wire.TypeJSON); err != nil {
		return err
	}
	body, err := s.bodies.Read(w, r)
	if err != nil {
		return err
	}
	if err = s.broker.Current(); err != nil {
		return err
	}
	policy := s.policy()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&policy); err != nil {
		return badPolicy(body, err)
	}
	if err = noNulls(body); err != nil {
		return err
	}
	if _, err = dec.Token(); !errors.Is(err, io.EOF) {
		return problem.New(http.StatusBadRequest, "malformed", "The body is not a JSON document", "unexpected data after the policy")
	}
	params, err := paramsOf(policy)
	if err != nil {
		return err
	}
	if err = s.broker.SetParams(r.Context(), params); err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, s.policy())
}

// noNulls refuses what JSON's decoder takes for "as it was": null for a field or
// for the whole. Whoever sends it means something else.
func noNulls(body []byte) error {
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&fields); err != nil {
		return badPolicy(body, err)
	}
	what := ""
	if fields == nil {
		what = "the body"
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if string(fields[name]) == "null" {
			what = problem.OneLine(name)
			break
		}
	}
	if what == "" {
		return nil
	}
	p := problem.New(http.StatusUnprocessableEntity, "invalid-policy", "The policy is not valid",
		what+" is null: give a value, or leave out what is to stay; GET /v1/policy shows the fields")
	if fields != nil {
		p.Field, p.Value = what, "null"
	}
	return p
}

// badPolicy tells no JSON (400) from JSON that is no policy (422).
func badPolicy(body []byte, err error) error {
	const remedy = "; GET /v1/policy shows the fields"
	if len(bytes.TrimSpace(body)) == 0 {
		return problem.New(http.StatusBadRequest, "malformed", "The body is not a JSON document",
			"the body is empty: send the fields that are to change, as {\"policy\": \"CE\"}"+remedy)
	}
	if !json.Valid(body) {
		return problem.New(http.StatusBadRequest, "malformed", "The body is not a JSON document", problem.OneLine(err.Error()))
	}
	p := problem.New(http.StatusUnprocessableEntity, "invalid-policy", "The policy is not valid", strings.TrimPrefix(problem.OneLine(err.Error()), "json: ")+remedy)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		p.Field, p.Value = kind.Field, problem.OneLine(kind.Value)
		p.Detail = fmt.Sprintf("%s must be %s (got %s)%s", p.Field, kindName(kind.Type), p.Value, remedy)
	} else if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		p.Field = problem.OneLine(strings.Trim(name, `"`))
	}
	return p
}

// kindName is what a policy's field takes.
func kindName(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // a policy has no other fields
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Struct:
		return "an object"
	}
	return "a whole number"
}
