package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// registerWhy adds GET /v1/jobs/{id}/why.
func (j *jobs) registerWhy() {
	j.api.Handle(huma.Operation{
		OperationID: "why", Method: http.MethodGet, Path: "/v1/jobs/{id}/why", Summary: "Why a job waits, and when it will start",
		Description: "What goes first and on what ground, why each site does not run it, and an estimate of the next task's start. " +
			"Answered as of the last entry applied: standings move with every run, so a blocking read waits for anything that happens.",
		Parameters: append(blockingParams(), rest.IDParam()),
		Responses:  j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Why{}), 404, 503),
	}, j.why)
}

// submitResponses adds the dry run's answer to those of a submission.
func (j *jobs) submitResponses() map[string]*huma.Response {
	out := j.api.Responses(http.StatusAccepted, wire.TypeJSON, j.api.Schema(wire.Accepted{}), 400, 403, 413, 415, 422, 429, 503)
	out["200"] = j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Why{}))["200"]
	return out
}

func (j *jobs) why(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := fsm.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = j.askedHere(r, id); err != nil {
		return err
	}
	if err = j.reads.await(w, r, fsm.JobID{}); err != nil { // what happens to others moves its place, too
		return err
	}
	why, err := j.broker.Why(r.Context(), id)
	if err != nil {
		return err
	}
	out := whyOf(&why)
	out.Freshness = freshness(r.Context())
	return rest.WriteJSON(w, http.StatusOK, out)
}

// dryRun answers a submission with dry_run=true: 200 and a wire.Why.
func (j *jobs) dryRun(w http.ResponseWriter, r *http.Request, body []byte, strict bool) error {
	req, err := request(body, "", strict)
	if err != nil {
		return err
	}
	why, err := j.broker.DryRun(r.Context(), req)
	if err != nil {
		return err
	}
	out := whyOf(&why)
	out.Freshness = freshness(r.Context())
	return rest.WriteJSON(w, http.StatusOK, out)
}

func whyOf(w *node.Why) wire.Why {
	out := wire.Why{
		Site: w.Job.Site, State: w.State, Waiting: w.Waiting, Summary: w.Summary, Turn: w.Turn,
		Turns: []wire.WhyTurn{}, Sites: make([]wire.WhySite, 0, len(w.Sites)), Estimate: estimateOf(w),
	}
	if w.Job.Num > 0 {
		out.ID = w.Job.String()
	}
	for i := range w.Sites {
		out.Sites = append(out.Sites, whySiteOf(&w.Sites[i]))
	}
	if v := w.View; v != nil {
		out.Ahead = &wire.WhyAhead{
			Place: 1 + v.Ahead.Own + v.Ahead.Others, Own: v.Ahead.Own, Others: v.Ahead.Others,
			CPU: float64(v.Ahead.MilliCPU) / 1000, Sites: v.Ahead.Sites, Exact: v.Ahead.Exact,
		}
		for i := range v.Turns {
			out.Turns = append(out.Turns, whyTurnOf(&v.Turns[i]))
		}
	}
	return out
}

func whyTurnOf(t *fsm.TurnView) wire.WhyTurn {
	out := wire.WhyTurn{
		Site: t.Site, Place: t.Place, Waiting: t.Waiting, OldestMs: t.OldestMs, Contribution: t.Contribution,
		Utility: t.Utility, Priority: t.Priority, Usage: t.Usage, Share: float64(t.Share) / 1000, Excess: t.Excess, Tied: t.Tied,
	}
	if t.Chosen {
		out.StartsAgo = &t.StartsAgo
	}
	return out
}

func whySiteOf(x *node.SiteReason) wire.WhySite {
	out := wire.WhySite{
		Site: x.Site, Why: x.Why.String(), Text: x.Text, Machines: x.Machines, Slots: x.Slots, Machine: x.Machine, Short: resourcesOf(x.Short), Lacks: x.Lacks, Near: x.Near,
	}
	if x.First.Num > 0 {
		out.First = x.First.String()
	}
	return out
}

func estimateOf(w *node.Why) wire.WhyEstimate {
	e := wire.WhyEstimate{Unknown: w.Estimate.Unknown, Waits: w.Estimate.Waits, Calibrated: w.Estimate.Calibrated, Starts: w.Calibration.Starts}
	if e.Unknown == "" {
		e.P50, e.P90 = seconds(w.Estimate.P50), seconds(w.Estimate.P90)
	}
	e.Held = heldOf(w.Calibration)
	return e
}

// heldOf is what part of the judged estimates held, nil without any.
func heldOf(c node.Calibration) *float64 {
	if c.Starts == 0 {
		return nil
	}
	held := float64(c.Held) / float64(c.Starts)
	return &held
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
