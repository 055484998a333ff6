package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
)

// drainWait bounds how long a status waits for the broker's loop: it must
// answer also while that is held up by a slow disk.
const drainWait = 2 * time.Second

// registerSite adds what an operator asks of the broker's own site.
func (f *federation) registerSite() {
	f.command("drain", "Take on nothing for other sites", "What runs goes on. It holds until resume, also across restarts.", f.api.Schema(wire.DrainRequest{}), wire.Drain{}, http.StatusOK, f.drain)
	f.command("resume", "End a drain", "", &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}, wire.Drain{}, http.StatusOK,
		f.resume)
	f.command("leave", "Take the site out of the federation",
		"It drains for up to 10 minutes, hands back what still runs, and its broker ends. Its account stays, and so do its waiting jobs, as withdrawn, unless forget is set; started again on its data, it comes back.",
		f.api.Schema(wire.LeaveRequest{}), wire.Leaving{}, http.StatusAccepted, f.leave)
}

// command registers a POST whose body may be left out.
func (f *federation) command(name, summary, doc string, in *huma.Schema, out any, ok int, h rest.Handler) {
	f.api.Handle(huma.Operation{
		OperationID: name, Method: http.MethodPost, Path: "/v1/" + name, Summary: summary, Description: doc,
		RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{wire.TypeJSON: {Schema: in}}},
		Responses:   f.api.Responses(ok, wire.TypeJSON, f.api.Schema(out), 400, 403, 413, 415, 422, 503),
	}, h)
}

func (f *federation) drain(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	var in wire.DrainRequest
	if err := f.readSwitches(w, r, map[string]*bool{"own": &in.Own}); err != nil {
		return err
	}
	if err := f.broker.Drain(r.Context(), in.Own); err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, wire.Drain{Draining: true, Own: in.Own})
}

func (f *federation) resume(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	if err := f.readSwitches(w, r, nil); err != nil {
		return err
	}
	if err := f.broker.Resume(r.Context()); err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, wire.Drain{})
}

// leave answers once the drain has begun: leaving may take ten minutes.
func (f *federation) leave(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	var in wire.LeaveRequest
	if err := f.readSwitches(w, r, map[string]*bool{"now": &in.Now, "forget": &in.Forget}); err != nil {
		return err
	}
	if err := f.broker.Leave(r.Context(), in.Now, in.Forget); err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusAccepted, wire.Leaving{Leaving: true})
}

// drainOf asks what the site takes on.
func (f *federation) drainOf(ctx context.Context) wire.Drain {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	on, own := f.broker.Draining(ctx)
	return wire.Drain{Draining: on, Own: own}
}

// readSwitches reads a JSON object of known booleans, each at most once. What
// is left out, also the whole body, keeps its value.
func (f *federation) readSwitches(w http.ResponseWriter, r *http.Request, known map[string]*bool) error {
	if err := rest.ContentType(r, wire.TypeJSON); err != nil {
		return err
	}
	body, err := f.bodies.Read(w, r)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if !json.Valid(body) {
		return problem.New(http.StatusBadRequest, "malformed", "The body is not a JSON document", "it is no valid JSON, or more than one value")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return badSwitch("body", "must be a JSON object, such as {}")
	}
	for seen := map[any]bool{}; dec.More(); {
		name, err := dec.Token()
		if err != nil {
			return err // not of a valid document
		}
		if seen[name] {
			return problem.New(http.StatusBadRequest, "malformed", "The body is not a JSON document", problem.OneLine(fmt.Sprint(name))+" stands twice")
		}
		seen[name] = true
		if err := setSwitch(dec, fmt.Sprint(name), known); err != nil {
			return err
		}
	}
	return nil
}

// setSwitch reads the value of one field.
func setSwitch(dec *json.Decoder, name string, known map[string]*bool) error {
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return err // not of a valid document
	}
	to := known[name]
	if to == nil {
		return badSwitch(name, "is no field of this request; /docs shows which there are")
	}
	*to = string(value) == "true"
	if !*to && string(value) != "false" {
		return badSwitch(name, "must be true or false")
	}
	return nil
}

// badSwitch is JSON that is not what was to be sent.
func badSwitch(field, reason string) error {
	field = problem.OneLine(field)
	p := problem.New(http.StatusUnprocessableEntity, "invalid-request", "The request is not valid", field+": "+reason)
	p.Field = field
	return p
}
