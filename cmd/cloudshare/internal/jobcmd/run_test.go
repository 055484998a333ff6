package jobcmd

import (
	"bytes"
	"context"
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
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
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
		o.states = []string{`{"state":"cancelled","attempt":1,"reason":"cancelled at site-1"}`}
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
		"never ran":    {[]string{`{"state":"queued"}`, `{"state":"cancelled"}`}, cli.ExitCancelled, "", "cancelled"},
		"lost":         {[]string{`{"state":"lost","attempt":5,"reason":"lost by site-2"}`}, cli.ExitLost, "", "lost by site-2"},
		"no exit code": {[]string{`{"state":"failed","attempt":1}`}, cli.ExitFailed, "stdout of attempt 1\n", "failed"},
	} {
		srv := httptest.NewServer(&oneTask{states: c.states, gone: name == "again"})
		code, out, errs := runCLI(t, "", "--addr", srv.URL, "run", "--", "true")
		srv.Close()
		if code != c.code || out != c.out || !strings.Contains(errs, c.errors) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	for _, line := range []string{"run", "run --count 2 -- true", "run --env X -- true"} {
		if code, _, errs := runCLI(t, "", strings.Fields(line)...); code != cli.ExitUsage || strings.Count(errs, "\n") != 1 {
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
	code := runWith(ctx, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, "run", "--addr", srv.URL, "--", "true")
	<-o.cancelled
	if code != cli.ExitCancelled || !strings.Contains(errs.String(), "cancelling job site-1.1") {
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
		s := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
		if s.Out = to; closed == "stderr" {
			s.Out, s.Err = io.Discard, to
		}
		code := runWith(t.Context(), s, "run", "--addr", srv.URL, "--", "yes")
		<-o.cancelled
		if code != cli.ExitCancelled {
			t.Errorf("%s: exit %d", closed, code)
		}
	}
}
