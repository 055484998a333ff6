package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// sites is a broker of site-1 beside that of site-2, each with a job of its own, and
// a site-3 that is away.
func sites(t *testing.T) (here *Server, own, other *fakeBroker) {
	t.Helper()
	own, other = newFake("site-1"), newFake("site-2")
	there := serve(t, other, Config{})
	own.others = map[string]string{"site-2": peerOf(there), "site-3": ""}
	here = serve(t, own, Config{})
	for _, s := range []*Server{here, there} {
		if w := ask(s, "POST", "/v1/jobs", js, `{"command":["a"],"count":3,"labels":{"k":"v"}}`); w.Code != 202 {
			t.Fatal(w.Body)
		}
	}
	return here, own, other
}

func post[T any](t *testing.T, s *Server, path string) (out T) {
	t.Helper()
	w := ask(s, "POST", path, "", "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return out
}

// TestCancelIsTheOwners: of jobs of several sites a broker cancels its own alone; the others stop none of them.
func TestCancelIsTheOwners(t *testing.T) {
	here, own, other := sites(t)
	got := post[wire.Cancelled](t, here, "/v1/cancel?job=site-2.1&job=site-3.1&job=site-1.1&job=site-2.9")
	var text []string
	for _, item := range got.Items {
		problem := ""
		if item.Problem != nil {
			problem = strings.TrimPrefix(item.Problem.Type, wire.ProblemPrefix)
		}
		text = append(text, item.Job+" "+item.State+problem)
	}
	if want := "[site-2.1 not-owner site-3.1 not-owner site-1.1 cancelled site-2.9 not-owner]"; fmt.Sprint(text) != want {
		t.Errorf("%v, want %s", text, want)
	}
	if own.jobs[0].State != "cancelled" || other.jobs[0].State != "queued" {
		t.Errorf("here %s, elsewhere %s", own.jobs[0].State, other.jobs[0].State)
	}
}

// TestCancelByLabelIsOneSites: labels select jobs of the asked broker's site.
func TestCancelByLabelIsOneSites(t *testing.T) {
	here, own, _ := sites(t)
	if got := post[wire.Cancelled](t, here, "/v1/cancel?label=k%3Dv"); len(got.Items) != 1 || got.More {
		t.Errorf("%+v", got)
	}
	if own.query.Site != "site-1" || own.query.Labels["k"] != "v" {
		t.Errorf("asked for %+v", own.query)
	}
}

// TestTooManyTargets: more than one request may name is refused.
func TestTooManyTargets(t *testing.T) {
	s := newServer(newFake("site-1"))
	var q strings.Builder
	for i := range 1000 + 1 {
		fmt.Fprintf(&q, "&job=site-1.%d", i+1)
	}
	for method, path := range map[string]string{"POST": "/v1/cancel?", "GET": "/v1/wait?"} {
		if w := ask(s, method, path+q.String()[1:], "", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "ask in parts") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestWaitForJobsOfSeveralSites: it is answered once the last of them has ended,
// here or elsewhere.
func TestWaitForJobsOfSeveralSites(t *testing.T) {
	here, own, other := sites(t)
	own.found(t)
	other.found(t)
	got := make(chan wire.Waited)
	go func() {
		var out wire.Waited
		res, err := http.Get("http://" + here.Addr() + "/v1/wait?job=site-2.1&job=site-1.1&wait=20s")
		if err == nil {
			err = json.NewDecoder(res.Body).Decode(&out)
			_ = res.Body.Close()
		}
		if err != nil {
			t.Error(err)
		}
		got <- out
	}()
	awaitWaiters(t, here, 1)
	for _, f := range []*fakeBroker{own, other} {
		select {
		case out := <-got:
			t.Fatalf("answered before %s has ended its job: %+v", f.site, out)
		default:
		}
		f.mu.Lock()
		f.jobs[0].State = "failed"
		f.mu.Unlock()
		f.apply(t, submitted(1))
		f.apply(t, &command.Cancel{Job: command.JobID{Site: f.site, Num: 1}, Task: -1})
	}
	out := <-got
	if !out.Done || len(out.Items) != 2 || out.Items[0].State != "failed" || out.Items[1].State != "failed" {
		t.Errorf("%+v", out)
	}
}

// TestOutputOfTasksAtSeveralSites: a task's output is read where it ran, or here if it has come home, also if its site
// is away; and one that has not begun is left out. A site that is away is asked once (TestAwaySitesAreAskedAgain).
func TestOutputOfTasksAtSeveralSites(t *testing.T) {
	here, own, other := sites(t)
	ask(here, "POST", "/v1/jobs", js, `{"command":["a"],"count":7}`)
	other.mu.Lock()
	other.jobs, other.site, other.name = append(other.jobs, own.jobs[1]), "site-1", "site-2" // it knows the job, too
	other.mu.Unlock()
	own.tasks = map[uint32]node.Task{
		0: {State: "succeeded", Attempt: 1, Site: "site-1"}, 1: {State: "running", Attempt: 1, Site: "site-2"},
		2: {State: "failed", Attempt: 1, Site: "site-3"}, 3: {State: "failed", Attempt: 1, Site: "site-3"},
		4: {State: "failed", Attempt: 1, Site: "site-3"}, 5: {State: "running", Attempt: 2, Site: "site-1"},
	}
	asked := 0
	own.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		switch q.Task {
		case 1:
			return nil, &node.ElsewhereError{Site: "site-2", Peer: own.others["site-2"], Role: "executor"}
		case 2, 3:
			asked++ // each may be here
			return nil, &node.ElsewhereError{Site: "site-3", Role: "executor"}
		case 4:
			return io.NopCloser(strings.NewReader("came home\n")), nil
		case 5:
			return io.NopCloser(strings.NewReader("a\n\xff\nb")), nil
		}
		return io.NopCloser(strings.NewReader("one\ntwo\nthree\n")), nil
	}
	w := ask(here, "GET", "/v1/jobs/site-1.2/logs?all=true&tail=2", "", "")
	var text strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		var o wire.Output
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		fmt.Fprintf(&text, "%d: %s%s", *o.Task, o.Text, o.Base64)
		if o.Problem != nil {
			text.WriteString(o.Problem.Type + "\n")
		}
	}
	const want = "0: two\nthree\n1: stdout of task 1 attempt 0\n2: urn:cloudshare:problem:executor-unreachable\n3: urn:cloudshare:problem:executor-unreachable\n4: came home\n5: \xff\n5: b"
	if got := text.String(); got != want || asked != 2 {
		t.Errorf("asked %d times:\n%q, want\n%q", asked, got, want)
	}
	if w = ask(here, "GET", "/v1/jobs/site-1.2/logs?tasks=0,7-9", "", ""); !strings.Contains(w.Body.String(), "has no task 7") {
		t.Errorf("a task that is not there: %s", w.Body)
	}
}

// TestFollowAnArray: pieces come as they are written, until every task has ended.
func TestFollowAnArray(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"],"count":2}`)
	f.tasks = map[uint32]node.Task{0: {State: "running", Attempt: 1, Site: "site-1"}, 1: {State: "succeeded", Attempt: 1, Site: "site-1"}}
	in, out := io.Pipe()
	f.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		if q.Task == 1 {
			return io.NopCloser(strings.NewReader("done\n")), nil
		}
		return in, nil
	}
	f.found(t)
	f.apply(t, submitted(1))
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/jobs/site-1.1/logs?all=true&follow=true", "", nil)
	lines := json.NewDecoder(res.Body)
	next := func() (o wire.Output) {
		if err := lines.Decode(&o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := next(); *o.Task != 1 || o.Text != "done\n" {
		t.Errorf("%+v", o)
	}
	if _, err := io.WriteString(out, "live\nhalf"); err != nil {
		t.Fatal(err)
	}
	if o := next(); *o.Task != 0 || o.Text != "live\n" {
		t.Errorf("%+v", o)
	}
	f.mu.Lock()
	f.tasks = map[uint32]node.Task{0: {State: "succeeded", Attempt: 1, Site: "site-1"}, 1: {State: "succeeded", Attempt: 1}}
	f.mu.Unlock()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if o := next(); *o.Task != 0 || o.Text != "half" {
		t.Errorf("%+v", o)
	}
	if err := lines.Decode(&wire.Output{}); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestFollowWaitsForWhatHasNotBegun: a task that its site was assigned and has not seen
// yet has no output there, as another broker says. It is followed once it has begun; its
// output was left out, with a problem.
func TestFollowWaitsForWhatHasNotBegun(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	f.tasks = map[uint32]node.Task{0: {State: "assigned", Attempt: 1, Site: "site-2"}}
	asked := make(chan struct{}, 8)
	f.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		f.mu.Lock()
		begun := !f.tasks[0].StartedAt.IsZero()
		f.mu.Unlock()
		asked <- struct{}{}
		if !begun {
			return nil, problem.New(404, problem.OutputGone, "The output is gone", "it is not here")
		}
		return io.NopCloser(strings.NewReader("begun\n")), nil
	}
	f.found(t)
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+"/v1/jobs/site-1.1/logs?all=true&follow=true", "", nil)
	<-asked
	f.mu.Lock()
	f.tasks = map[uint32]node.Task{0: {State: "succeeded", Attempt: 1, Site: "site-2", StartedAt: time.UnixMilli(1)}}
	f.mu.Unlock()
	f.apply(t, submitted(1))
	if got := outputsIn(t, res.Body); got != "0 begun" {
		t.Errorf("followed %q", got)
	}
}

// TestCancelByLabelLeavesOutWhatEnds: a job of which all is being stopped is not selected
// again. With more than a thousand such jobs the others were never reached, and who asked
// for them had the same ones cancelled for as long as they took to stop.
func TestCancelByLabelLeavesOutWhatEnds(t *testing.T) {
	here, own, _ := sites(t)
	for _, counts := range []map[string]uint32{{"stopping": 2, "succeeded": 1}, {"stopping": 1, "queued": 2}} {
		job := own.jobs[0]
		job.ID.Num, job.Counts = uint64(len(own.jobs)+1), counts
		own.jobs = append(own.jobs, job)
	}
	got := post[wire.Cancelled](t, here, "/v1/cancel?label=k%3Dv")
	if len(got.Items) != 2 || got.Items[0].Job != "site-1.1" || got.Items[1].Job != "site-1.3" {
		t.Errorf("%+v", got)
	}
}
