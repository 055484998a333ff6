package jobs

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// submit is the hot path: the body is read once and parsed once.
func (j *Jobs) submit(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	strict, err := rest.QueryBool(r, "strict")
	if err != nil {
		return err
	}
	dry, err := rest.QueryBool(r, "dry_run")
	if err != nil {
		return err
	}
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return err
	}
	kind, err := rest.MediaType(r, wire.TypeJSON, wire.TypeNDJSON)
	if err != nil {
		return err
	}
	if kind == wire.TypeNDJSON {
		if dry {
			return problem.BadQuery("dry_run", "true", "is for one job, sent as "+wire.TypeJSON)
		}
		return j.submitLines(w, r, key, strict)
	}
	body, err := j.bodies.Read(w, r)
	if err != nil {
		return err
	}
	if dry {
		return j.dryRun(w, r, body, strict)
	}
	rest.NoteOf(r.Context()).Asked = func() string { return asked(body) }
	req, err := request(body, key, strict)
	if err != nil {
		j.refuse(err)
		return err
	}
	return j.accept(w, r, req)
}

// refuse counts a job that is refused.
func (j *Jobs) refuse(why error) {
	j.refused.Inc()
	var over *node.UserQuotaError
	if errors.As(why, &over) {
		j.overQuota(over.Quota)
	}
}

// accept submits one job and answers with what became of it.
func (j *Jobs) accept(w http.ResponseWriter, r *http.Request, req node.Request) error {
	req.Refused = j.resolve(r.Context(), &req.Spec)
	answer := j.broker.Submit(r.Context(), []node.Request{req})[0]
	if answer.Err != nil {
		j.refuse(answer.Err)
		return answer.Err
	}
	j.accepted.Inc()
	if answer.Replayed {
		w.Header().Set(wire.HeaderReplayed, "true")
	}
	w.Header().Set("Content-Type", wire.TypeJSON)
	w.Header().Set("Location", "/v1/jobs/"+answer.ID.String())
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(appendAccepted(nil, answer, false)) // the job is accepted even if the client is gone
	return nil
}

// request reads one job. What it means is only compared if there is a key.
func request(body []byte, key string, strict bool) (node.Request, error) {
	spec, err := jobspec.ParseSpec(body)
	if err != nil {
		return node.Request{}, err
	}
	req := node.Request{Spec: spec, Key: key, Strict: strict}
	if key != "" {
		req.Meaning = spec.Meaning()
	}
	return req, nil
}

// appendAccepted writes a wire.Accepted and a newline. None of its strings but
// the reason needs an escape. A line says itself that it is a repeat's; for one
// job a header does, and the answer stays the same to the byte.
func appendAccepted(b []byte, a node.Answer, replayed bool) []byte {
	b = append(append(b, `{"id":"`...), a.ID.String()...)
	b = append(append(b, `","state":"`...), a.State...)
	if a.Reason != "" {
		b = append(b, `","reason":`...)
		b = append(appendReason(b, a.Reason), `,"durability":"`...)
	} else {
		b = append(b, `","durability":"`...)
	}
	b = append(append(b, a.Durability...), '"')
	if replayed {
		b = append(b, `,"replayed":true`...)
	}
	return append(b, '}', '\n')
}

func appendReason(b []byte, reason string) []byte {
	text, err := json.Marshal(reason)
	if err != nil {
		return append(b, '"', '"')
	}
	return append(b, text...)
}
