package jobcmd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// breaking gives ever more of a text and breaks off, n times; then all of it.
func breaking(text string, n int) func(w http.ResponseWriter, stream string) bool {
	asked := 0
	return func(w http.ResponseWriter, stream string) bool {
		if stream != "stdout" {
			return true
		}
		asked++
		if asked > n {
			_, _ = io.WriteString(w, text)
			return true
		}
		_, _ = io.WriteString(w, text[:len(text)*asked/(n+1)])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

const (
	taskRuns      = `{"state":"running","attempt":1,"started_at":"2026-11-20T12:00:00Z"}`
	taskSucceeded = `{"state":"succeeded","attempt":1,"exit_code":0}`
)

// TestBrokenOutputGoesOn: what follows output prints each byte once, also over
// connections that break.
func TestBrokenOutputGoesOn(t *testing.T) {
	for _, args := range []string{"run -- true", "logs site-1.1 --follow", "logs site-1.1"} {
		o := &oneTask{states: []string{taskRuns, taskRuns, taskRuns, taskSucceeded}, cut: breaking("one\ntwo\nthree\nfour\n", 3)}
		srv := httptest.NewServer(o)
		code, out, errs := runCLI(t, "", append([]string{"--addr", srv.URL}, strings.Fields(args)...)...)
		srv.Close()
		if code != 0 || out != "one\ntwo\nthree\nfour\n" || strings.Contains(errs, "complete") {
			t.Errorf("%s: exit %d, printed %q\n%s", args, code, out, errs)
		}
	}
}

// TestMissingOutputIsNoSuccess: a task that succeeded while some of its output
// cannot be had is exit 1; one that failed keeps its own code.
func TestMissingOutputIsNoSuccess(t *testing.T) {
	for end, want := range map[string]int{taskSucceeded: cli.ExitError, `{"state":"failed","attempt":1,"exit_code":7}`: 7} {
		broken := breaking("one\ntwo\n", 1)
		o := &oneTask{states: []string{taskRuns, end}}
		o.cut = func(w http.ResponseWriter, stream string) bool {
			if stream == "stdout" && broken == nil { // by now its files are gone
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-found","title":"Not found","status":404}`)
				return true
			}
			cut := broken
			if stream == "stdout" {
				broken = nil
			}
			return cut == nil || cut(w, stream)
		}
		srv := httptest.NewServer(o)
		code, out, errs := runCLI(t, "", "--addr", srv.URL, "run", "--", "true")
		srv.Close()
		if code != want || out != "one\n" || !strings.Contains(errs, "stdout is not complete") {
			t.Errorf("exit %d, want %d; printed %q\n%s", code, want, out, errs)
		}
	}
}

// TestNothingBegan: nobody misses output of a task that could not begin.
func TestNothingBegan(t *testing.T) {
	o := &oneTask{states: []string{`{"state":"failed","attempt":1,"exit_code":125,"reason":"cannot run this task"}`}}
	o.cut = func(w http.ResponseWriter, _ string) bool {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-found","title":"Not found","status":404}`)
		return true
	}
	srv := httptest.NewServer(o)
	defer srv.Close()
	code, out, errs := runCLI(t, "", "--addr", srv.URL, "run", "--", "true")
	if code != 125 || out != "" || strings.Contains(errs, "complete") || !strings.Contains(errs, "cannot run this task") {
		t.Errorf("exit %d, printed %q\n%s", code, out, errs)
	}
}

// TestBrokenOutputEnds: once its attempt is over, the tries are bounded.
func TestBrokenOutputEnds(t *testing.T) {
	for state, most := range map[string]int{
		taskSucceeded: triesOver, `{"state":"running","attempt":2}`: triesFormer,
	} {
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/tasks") {
				fmt.Fprintf(w, `{"items":[%s],"next":""}`, state)
				return
			}
			asked++
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:executor-unreachable","status":503}`)
		}))
		c, err := client.New(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		l := &logCopy{
			client: c, id: "site-1.1", query: client.LogQuery{Attempt: 1}, to: counter{Writer: io.Discard},
			pause: time.Microsecond, begun: true,
		}
		err = l.run(t.Context())
		srv.Close()
		if p := new(client.Problem); !errors.As(err, &p) || asked != most+1 {
			t.Errorf("%s: asked %d times, want %d: %v", state, asked, most+1, err)
		}
	}
}

// failing cannot be written to.
type failing struct{ asked int }

func (f *failing) Write([]byte) (int, error) {
	f.asked++
	return 0, io.ErrClosedPipe
}

// TestClosedOutputIsNotAskedAgain: who reads this program has gone.
func TestClosedOutputIsNotAskedAgain(t *testing.T) {
	c, err := client.New(clitest.Broker(t))
	if err != nil {
		t.Fatal(err)
	}
	to := new(failing)
	if _, err := copyLogs(t.Context(), c, "site-1.1", client.LogQuery{}, to); !errors.Is(err, io.ErrClosedPipe) || to.asked != 1 {
		t.Errorf("written %d times: %v", to.asked, err)
	}
}

// TestSubmitFollowsAllAttempts: submit --follow prints what run prints, and exits
// by the job's state.
func TestSubmitFollowsAllAttempts(t *testing.T) {
	o := &oneTask{states: []string{taskRuns, taskRuns, `{"state":"running","attempt":2,"started_at":"2026-11-20T12:00:00Z"}`, `{"state":"failed","attempt":2,"exit_code":7}`}, job: `{"id":"site-1.1","state":"failed","counts":{"failed":1}}`}
	srv := httptest.NewServer(o)
	defer srv.Close()
	code, out, errs := runCLI(t, "", "--addr", srv.URL, "submit", "--follow", "--", "true")
	if code != cli.ExitFailed || out != "stdout of attempt 1\nstdout of attempt 2\n" || !strings.Contains(errs, "stderr of attempt 2") || !strings.Contains(errs, "job site-1.1 failed") {
		t.Errorf("exit %d, printed %q\n%s", code, out, errs)
	}
}

// TestWaitInACrowd: where no more clients may wait, --wait looks now and then.
func TestWaitInACrowd(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"id":"site-1.1","state":"queued"}`)
		case r.URL.Query().Has("index"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:too-many-waiters","status":503}`)
		case asked == 2:
			w.Header().Set(wire.HeaderIndex, "7")
			_, _ = io.WriteString(w, `{"id":"site-1.1","state":"running"}`)
		default:
			_, _ = io.WriteString(w, `{"id":"site-1.1","state":"succeeded"}`)
		}
	}))
	defer srv.Close()
	if code, _, errs := runCLI(t, "", "--addr", srv.URL, "submit", "--wait", "--", "true"); code != cli.ExitOK || asked != 4 {
		t.Errorf("exit %d after %d questions\n%s", code, asked, errs)
	}
}
