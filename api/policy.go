package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
)

func (f *federation) registerPolicy() {
	responses := f.api.Responses(http.StatusOK, wire.TypeJSON, f.api.Schema(wire.PolicySet{}), 400, 403, 409, 413, 415,
		422, 429, 503)
	waits := strconv.Itoa(http.StatusAccepted)
	responses[waits] = f.api.Responses(http.StatusAccepted, wire.TypeJSON, f.api.Schema(wire.PolicySet{}))[waits]
	f.api.Handle(huma.Operation{
		OperationID: "set-policy", Method: http.MethodPut, Path: "/v1/policy", Summary: "Change the federation's policy",
		Description: "Fields left out keep their value. Where more than this site must agree, the answer is 202 with the policy as it is and the motion for the change.",
		RequestBody: &huma.RequestBody{
			Required: true,
			Content:  map[string]*huma.MediaType{wire.TypeJSON: {Schema: f.api.Schema(wire.Policy{})}},
		},
		Responses: responses,
	}, f.setPolicy)
}

// policy returns the federation's.
func (f *federation) policy() wire.Policy {
	return form.Policy(f.broker.Params(), len(f.broker.Sites()))
}

// setPolicy reads the fields given on top of the policy as it is, so that a
// client may send what it wants to change only.
func (f *federation) setPolicy(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	if err := rest.ContentType(r, wire.TypeJSON); err != nil {
		return err
	}
	body, err := f.bodies.Read(w, r)
	if err != nil {
		return err
	}
	if err = f.broker.Current(); err != nil {
		return err
	}
	policy := f.policy()
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
	params, err := form.Params(policy)
	if err != nil {
		return err
	}
	waits, err := f.broker.SetParams(r.Context(), params)
	switch {
	case err != nil:
		return err
	case waits == nil:
		return rest.WriteJSON(w, http.StatusOK, wire.PolicySet{Policy: f.policy()})
	}
	motion := form.Motion(*waits)
	return rest.WriteJSON(w, http.StatusAccepted, wire.PolicySet{Policy: f.policy(), Motion: &motion})
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
		p.Field, p.Value = kind.Field, valueOf(body, kind.Field)
		p.Detail = fmt.Sprintf("%s must be %s (got %s)%s", p.Field, kindName(kind.Type), p.Value, remedy)
	} else if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		p.Field = problem.OneLine(strings.Trim(name, `"`))
	}
	return p
}

// valueOf returns what a body gives for a field of the policy.
func valueOf(body []byte, field string) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it is valid JSON; what is no object has no fields
	return problem.OneLine(string(fields[field]))
}

// kindName returns what a policy's field takes.
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
