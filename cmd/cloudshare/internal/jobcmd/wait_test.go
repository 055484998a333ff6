package jobcmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestWaitTimeoutBesideASiteThatIsAway: --timeout ends the wait for a job whose owner
// cannot be asked, too, and the exit code says that nothing is known of it. It went on for
// as long as a broker may be restarting.
func TestWaitTimeoutBesideASiteThatIsAway(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"items":[{"job":"b.1","over":false,"problem":{"type":"urn:cloudshare:problem:owner-unreachable","title":"The owner's site cannot be reached","status":503}}],"done":false}`))
	}))
	defer s.Close()
	began := time.Now()
	code, _, errs := runCLI(t, "", "wait", "--addr", s.URL, "b.1", "--timeout", "1ms")
	if took := time.Since(began); code != cli.ExitUnreachable || took > cli.Patience/2 || !strings.Contains(errs, "within 1ms") {
		t.Errorf("exit %d after %s: %s", code, took, errs)
	}
}

// Jobs of a user are selected by the broker; how many were cancelled is a note.
func TestCancelOfAUser(t *testing.T) {
	var asked string
	user := "alice"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/whoami" {
			_, _ = fmt.Fprintf(w, `{"site":"a","user":%q,"role":"user"}`, user)
			return
		}
		asked = r.URL.RawQuery
		_, _ = fmt.Fprint(w, `{"items":[{"job":"a.1","state":"cancelled"},{"job":"a.2","state":"running"}],"more":false}`)
	}))
	defer s.Close()
	for line, want := range map[string]string{
		"--user bob": "user=bob", "--mine": "user=alice", "--mine --label k=v": "label=k%3Dv&user=alice", "--label k=v": "label=k%3Dv",
	} {
		code, out, errs := runCLI(t, "", append([]string{"cancel", "--addr", s.URL}, strings.Fields(line)...)...)
		if code != 0 || asked != want || strings.Count(out, "\n") != 2 || !strings.Contains(errs, "2 open jobs") {
			t.Errorf("%s: asked %s, exit %d: %s%s", line, asked, code, out, errs)
		}
	}
	asked, user = "", ""
	for _, args := range [][]string{{"--mine"}, {"--user", "", "--label", "k=v"}, {"--user", "bob", "--mine"}, {"--user", "bob", "a.1"}} {
		code, _, errs := runCLI(t, "", append([]string{"cancel", "--addr", s.URL}, args...)...)
		if code != cli.ExitUsage || asked != "" {
			t.Errorf("%q: asked %s, exit %d: %s", args, asked, code, errs)
		}
	}
}

// TestCancelByLabelEnds: where a broker names the same jobs again, as those that are being
// stopped, it is asked a few times more, not forever, and each job is shown once.
func TestCancelByLabelEnds(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		asked++
		more := asked < 50
		_, _ = fmt.Fprintf(w, `{"items":[{"job":"a.1","state":"running"}],"more":%t}`, more)
	}))
	defer s.Close()
	code, out, errs := runCLI(t, "", "cancel", "--addr", s.URL, "--label", "k=v")
	if asked > 1+maxVain || code != cli.ExitRefused || strings.Count(out, "a.1") != 1 || !strings.Contains(errs, "more jobs") {
		t.Errorf("asked %d times, exit %d: %s%s", asked, code, out, errs)
	}
}
