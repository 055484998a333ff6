package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Why explains a job of the fake as one that waits behind another site.
func (f *fakeBroker) Why(_ context.Context, id command.JobID) (node.Why, error) {
	job, err := f.find(id)
	if err != nil {
		return node.Why{}, err
	}
	w := fakeWhy(job.Spec)
	w.Job, w.View.Job, w.Notices = id, id, job.Notices
	if job.State == "cancelled" {
		w.State = job.State
	}
	return w, nil
}

func (f *fakeBroker) DryRun(_ context.Context, req node.Request) (node.Why, error) {
	if req.Strict {
		return node.Why{}, fmt.Errorf("%w: needs %d cores", node.ErrUnfit, req.Spec.Resources.CPU)
	}
	return fakeWhy(req.Spec), nil
}

func fakeWhy(spec jobspec.Spec) node.Why {
	v := &fsm.WhyView{
		Ahead: fsm.AheadView{Own: 1, Others: 3, MilliCPU: 4500, Sites: 1, Exact: true},
		Turns: []fsm.TurnView{
			{Site: "site-2", Place: 1, Waiting: 3, Priority: "9", Chosen: true, StartsAgo: 0},
			{Site: "site-1", Place: 2, Waiting: 2, Priority: "-9", Usage: "7", Share: 1500},
		},
	}
	return node.Why{
		Job: command.JobID{Site: "site-1"}, State: "queued", Waiting: spec.Count, Summary: "4 tasks go first", Turn: "site-2 goes first", View: v,
		Sites: []node.SiteReason{
			{SiteWhy: fsm.SiteWhy{Site: "site-1", Why: fsm.HinderedRule}, Text: "excluded"},
			{SiteWhy: fsm.SiteWhy{
				Site: "site-2", Why: fsm.HinderedFull, Machines: 1, Machine: "m0", Short: command.Resources{MilliCPU: 1500},
				First: command.JobID{Site: "site-2", Num: 4},
			}, Text: "full"},
		},
		Estimate:    node.Estimate{P50: 90 * time.Second, P90: 5 * time.Minute, Waits: 40, Calibrated: true},
		Calibration: node.Calibration{Starts: 8, Held: 7},
	}
}

// TestWhy: facts, words and estimate come over the wire; what is unknown is null.
func TestWhy(t *testing.T) {
	s := newServer(newFake("site-1"))
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	res := ask(s, "GET", "/v1/jobs/site-1.1/why", "", "")
	const want = `{"id":"site-1.1","site":"site-1","state":"queued","waiting":1,"summary":"4 tasks go first","priority":0,"turn":"site-2 goes first",` +
		`"ahead":{"place":5,"own":1,"others":3,"cpu":4.5,"sites":1,"exact":true},` +
		`"turns":[{"site":"site-2","place":1,"waiting":3,"oldest_ms":0,"contribution":"","utility":"","priority":"9","starts_ago":0,"tied":false},` +
		`{"site":"site-1","place":2,"waiting":2,"oldest_ms":0,"contribution":"","utility":"","priority":"-9","usage":"7","share":1.5,"tied":false}],` +
		`"sites":[{"site":"site-1","why":"rule","text":"excluded","machines":0,"slots":0,"short":{"cpu":0,"memory":"0","gpu":0}},` +
		`{"site":"site-2","why":"full","text":"full","machines":1,"slots":0,"machine":"m0","short":{"cpu":1.5,"memory":"0","gpu":0},"first":"site-2.4"}],` +
		`"estimate":{"p50_seconds":90,"p90_seconds":300,"from_waits":40,"calibrated":true,"starts":8,"p90_held":0.875}}`
	if got := strings.TrimSpace(res.Body.String()); res.Code != 200 || got != want {
		t.Fatalf("%d %s", res.Code, got)
	}
	for target, code := range map[string]int{
		"/v1/jobs/site-1.9/why": 404, "/v1/jobs/nonsense/why": 404, "/v1/jobs/site-1.1/why?x=1": 400,
	} {
		if res := ask(s, "GET", target, "", ""); res.Code != code {
			t.Errorf("%s: %d", target, res.Code)
		}
	}
	plain := form.Why(&node.Why{Job: command.JobID{Site: "a", Num: 1}, Estimate: node.Estimate{Unknown: "no history"}})
	text, err := json.Marshal(plain.Estimate)
	if err != nil || string(text) != `{"p50_seconds":null,"p90_seconds":null,"unknown":"no history","from_waits":0,"calibrated":false,"starts":0,"p90_held":null}` {
		t.Errorf("%s %v", text, err)
	}
}

// TestDryRun: nothing is accepted, and what a submission would refuse is refused.
func TestDryRun(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	for _, c := range []struct {
		target, kind, body string
		code               int
	}{
		{"/v1/jobs?dry_run=true", js, `{"command":["a"],"count":3}`, 200},
		{"/v1/jobs?dry_run=true&strict=true", js, `{"command":["a"]}`, 422},
		{"/v1/jobs?dry_run=true", js, `{"command":[]}`, 422},
		{"/v1/jobs?dry_run=true", js, `{`, 400},
		{"/v1/jobs?dry_run=perhaps", js, `{"command":["a"]}`, 400},
		{"/v1/jobs?dry_run=true", nd, `{"command":["a"]}`, 400},
	} {
		res := ask(s, "POST", c.target, c.kind, c.body)
		var w wire.Why
		if res.Code != c.code || c.code == 200 && (json.Unmarshal(res.Body.Bytes(), &w) != nil || w.ID != "" ||
			w.Waiting != 3) {
			t.Errorf("%s %s: %d %s", c.target, c.body, res.Code, res.Body)
		}
	}
	if len(f.jobs) > 0 || len(f.chunks) > 0 {
		t.Error("a dry run was submitted")
	}
	if res := ask(s, "POST", "/v1/jobs?dry_run=false", js, `{"command":["a"]}`); res.Code != 202 {
		t.Errorf("%d", res.Code)
	}
}

// TestWhyElsewhere: a job that only its owner's broker can explain is passed on.
func TestWhyElsewhere(t *testing.T) {
	owner := newFake("site-2")
	server := serve(t, owner, Config{})
	ask(server, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	asked := newFake("site-1")
	asked.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(server), Role: "owner"}
	res := ask(newServer(asked), "GET", "/v1/jobs/site-2.1/why", "", "")
	if res.Code != 200 || !strings.Contains(res.Body.String(), `"id":"site-2.1"`) {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	asked.elseErr = &node.ElsewhereError{Site: "site-2", Role: "owner"}
	res = ask(newServer(asked), "GET", "/v1/jobs/site-2.1/why", "", "")
	if res.Code != 503 || !strings.Contains(res.Body.String(), "owner-unreachable") {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
}
