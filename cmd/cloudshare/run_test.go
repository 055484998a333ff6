package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
)

// oneTask is a broker with one job of one task, which goes through the states
// given, one more with each blocking read.
type oneTask struct {
	mu        sync.Mutex
	states    []string // JSON of the task
	cancelled chan struct{}
	gone      bool   // the first attempt's stderr
	asked     func() // if set: called when somebody asks for the task
	job       string
	// cut answers a question for output by itself; false leaves it to others.
	cut func(w http.ResponseWriter, stream string) bool
}

func (o *oneTask) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/jobs":
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"id":"site-1.1","state":"queued"}`)
	case "GET /v1/jobs/site-1.1/tasks":
		if o.asked != nil {
			o.asked()
		}
		index := fmt.Sprint(100 - len(o.states))
		if r.URL.Query().Get("index") == index && !o.happens(r.Context()) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set(wire.HeaderIndex, index)
		fmt.Fprintf(w, `{"items":[%s],"next":""}`, o.states[0])
		if len(o.states) > 1 {
			o.states = o.states[1:]
		}
	case "GET /v1/jobs/site-1.1/logs":
		q := r.URL.Query()
		if o.cut != nil && o.cut(w, q.Get("stream")) {
			return
		}
		if o.gone && q.Get("attempt") == "1" && q.Get("stream") == "stderr" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-found","status":404}`)
			return
		}
		fmt.Fprintf(w, "%s of attempt %s\n", q.Get("stream"), q.Get("attempt"))
	case "GET /v1/jobs/site-1.1":
		_, _ = io.WriteString(w, o.job)
	case "DELETE /v1/jobs/site-1.1":
		o.states = []string{`{"state":"cancelled","attempt":1,"reason":"cancelled by its owner"}`}
		_, _ = io.WriteString(w, `{"id":"site-1.1"}`)
		close(o.cancelled)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// happens waits, as a broker does, for something new in a job of which the
// client has seen all: a cancel, or nothing. REQUIRES: o.mu held.
func (o *oneTask) happens(ctx context.Context) bool {
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-o.cancelled:
		return true
	case <-time.After(5 * time.Second): // a client that waits for what never comes
	case <-ctx.Done():
	}
	return false
}

// TestRunExitsAsTheTask: the exit code is the task's own, and its output is here.
func TestRunExitsAsTheTask(t *testing.T) {
	const begun = `"started_at":"2026-11-20T12:00:00Z"`
	running := func(attempt int) string {
		return fmt.Sprintf(`{"state":"running","attempt":%d,%s}`, attempt, begun)
	}
	for name, c := range map[string]struct {
		states      []string
		code        int
		out, errors string
	}{
		"its own code": {[]string{`{"state":"queued"}`, `{"state":"assigned","attempt":1}`, running(1), `{"state":"failed","attempt":1,"exit_code":7,` + begun + `}`}, 7, "stdout of attempt 1\n", ""},
		"quick":        {[]string{`{"state":"succeeded","attempt":1,"exit_code":0}`}, 0, "stdout of attempt 1\n", ""},
		"no program":   {[]string{`{"state":"failed","attempt":1,"exit_code":127,"reason":"start x: no such file"}`}, 127, "stdout of attempt 1\n", "could not be started: start x: no such file"},
		"a signal":     {[]string{`{"state":"failed","attempt":1,"signal":9,` + begun + `}`}, 137, "stdout of attempt 1\n", "ended by signal 9"},
		"again":        {[]string{running(1), running(3), `{"state":"succeeded","attempt":3}`}, 0, "stdout of attempt 1\nstdout of attempt 2\nstdout of attempt 3\n", "stderr of attempt 3"},
		"never ran":    {[]string{`{"state":"queued"}`, `{"state":"cancelled"}`}, exitCancelled, "", "cancelled"},
		"lost":         {[]string{`{"state":"lost","attempt":5,"reason":"lost by site-2"}`}, exitLost, "", "lost by site-2"},
		"no exit code": {[]string{`{"state":"failed","attempt":1}`}, exitFailed, "stdout of attempt 1\n", "failed"},
	} {
		srv := httptest.NewServer(&oneTask{states: c.states, gone: name == "again"})
		code, out, errs := cli(t, "", "--addr", srv.URL, "run", "--", "true")
		srv.Close()
		if code != c.code || out != c.out || !strings.Contains(errs, c.errors) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	for _, line := range []string{"run", "run --count 2 -- true", "run --env X -- true"} {
		if code, _, errs := cli(t, "", strings.Fields(line)...); code != exitUsage || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d %s", line, code, errs)
		}
	}
}

// TestInterruptedRunCancels: Ctrl-C cancels the job, and waits for its end.
func TestInterruptedRunCancels(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	o := &oneTask{states: []string{`{"state":"queued"}`}, cancelled: make(chan struct{}), asked: interrupt}
	srv := httptest.NewServer(o)
	defer srv.Close()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"run", "--addr", srv.URL, "--", "true"}, streams{strings.NewReader(""), &out, &errs}, func(string) string { return "" })
	<-o.cancelled
	if code != exitCancelled || !strings.Contains(errs.String(), "cancelling job site-1.1") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// Found by review: under `| head` run died of its closed pipe, and its task ran
// on with nobody to read it.
func TestRunWithoutAReaderCancels(t *testing.T) {
	for _, closed := range []string{"stdout", "stderr"} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		from.Close()
		defer to.Close()
		o := &oneTask{states: []string{`{"state":"running","attempt":1,"started_at":"2026-11-20T12:00:00Z"}`}, cancelled: make(chan struct{})}
		srv := httptest.NewServer(o)
		defer srv.Close()
		s := streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
		if s.out = to; closed == "stderr" {
			s.out, s.err = io.Discard, to
		}
		code := run(t.Context(), []string{"run", "--addr", srv.URL, "--", "yes"}, s, func(string) string { return "" })
		<-o.cancelled
		if code != exitCancelled {
			t.Errorf("%s: exit %d", closed, code)
		}
	}
}

// TestWatch shows a job each time it changes, and ends with it.
func TestWatch(t *testing.T) {
	var mu sync.Mutex
	states, asked := []string{"queued", "queued", "running", "succeeded"}, []string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.RawQuery)
		if len(asked) == 2 { // a restart is waited for
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:stopping","status":503}`)
			return
		}
		w.Header().Set(wire.HeaderIndex, fmt.Sprint(len(asked)))
		fmt.Fprintf(w, `{"id":"site-1.1","state":%q,"spec":{}}`, states[0])
		states = states[1:]
	}))
	defer srv.Close()
	code, out, errs := cli(t, "", "job", "site-1.1", "--watch", "-o", "json", "--addr", srv.URL)
	var seen []string
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var j wire.Job
		if err := dec.Decode(&j); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, j.State)
	}
	if code != 0 || fmt.Sprint(seen) != "[queued running succeeded]" || !strings.Contains(errs, "trying again") {
		t.Errorf("exit %d, saw %v: %s", code, seen, errs)
	}
	if want := "[ home=0&index=1&wait=5s home=0&index=1&wait=5s home=0&index=3&wait=5s home=0&index=4&wait=5s]"; fmt.Sprint(asked) != want {
		t.Errorf("asked %v\nwant %s", asked, want)
	}
	if code, _, errs := cli(t, "", "job", "site-1.2", "-w", "--addr", broker(t)); code != exitNotFound {
		t.Errorf("an unknown job: exit %d %s", code, errs)
	}
}

// TestEventsCommand prints events for people and for programs.
func TestEventsCommand(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "follow=false&from=7&kind=job&kind=task"; r.URL.RawQuery != want {
			t.Errorf("asked %s, want %s", r.URL.RawQuery, want)
		}
		for _, data := range []string{
			`{"id":"8.1","index":8,"kind":"job.submitted","job":"site-1.1","count":2}`,
			`{"id":"8.2","index":8,"kind":"task.ended","job":"site-1.1","task":3,"count":4,"outcome":"cancelled","reason":"by its\nowner"}`,
			`{"id":"9.1","index":9,"kind":"task.ended","job":"site-1.1","task":0,"count":1,"attempt":2,"site":"site-2","outcome":"failed","exit_code":3,"run_ms":1500}`,
			`{"id":"9.2","index":9,"kind":"site.offered","site":"site-2","resources":{"cpu":1.5}}`,
		} {
			fmt.Fprintf(w, "event: x\ndata: %s\n\n", data)
		}
		_, _ = io.WriteString(w, "event: reset\ndata: {\"id\":\"11\",\"index\":11,\"reason\":\"too old\"}\n\n")
	}))
	defer srv.Close()
	args := []string{"events", "--once", "--from", "7", "--kind", "job", "--kind", "task", "--addr", srv.URL}
	code, out, errs := cli(t, "", args...)
	const want = `-       8  job.submitted     site-1.1 (2 tasks)
-       8  task.ended        site-1.1/3–6 cancelled (by its owner)
-       9  task.ended        site-1.1/0 attempt 2 at site-2 failed exit 3 after 1.5 s
-       9  site.offered      site-2 lends 1.5 cores
`
	if code != 0 || out != want || !strings.Contains(errs, "events missed: too old") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ = cli(t, "", append(args, "-o", "json")...); code != 0 || strings.Count(out, "\n") != 4 || !strings.HasPrefix(out, `{"id":"8.1",`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}
