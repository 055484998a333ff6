package api

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
)

// TestPages: people get pages where programs get problems.
func TestPages(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	ask(s, "POST", "/v1/jobs", js, `{"command":["echo"],"name":"<script>alert(1)</script>"}`)
	for target, want := range map[string]string{
		"/": "<h1>Federation</h1>", "/fairness": "<h1>Fairness</h1>", "/queue": "<h1>Queue</h1>", "/jobs": "&lt;script&gt;alert(1)",
		"/jobs/site-1.1": "site-1.1", "/timeline": "keeps no history", "/events": "<h1>Events</h1>",
	} {
		w := ask(s, "GET", target, "", "")
		page := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(page, want) || strings.Contains(page, "<script>") {
			t.Errorf("%s: %d %s", target, w.Code, page)
		}
		if w.Header().Get(wire.HeaderIndex) == "" {
			t.Errorf("%s: no index", target)
		}
	}
	if w := ask(s, "GET", "/jobs/site-1.9", "", ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "<h1>Not found</h1>") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s, "POST", "/jobs/site-1.1/cancel", "", "", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("another page's cancel: %d", w.Code)
	}
	if w := ask(s, "POST", "/jobs/site-1.1/cancel", "", "", "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusSeeOther {
		t.Errorf("cancel: %d %s", w.Code, w.Body)
	}
}

// TestPagesOfAnotherBroker: a job that its owner alone knows is shown by it.
func TestPagesOfAnotherBroker(t *testing.T) {
	owner := newFake("site-2")
	there := serve(t, owner, Config{})
	ask(there, "POST", "/v1/jobs", js, `{"command":["echo"],"name":"at home","count":77}`)
	f := newFake("site-1")
	f.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(there), Role: "owner"}
	here := newServer(f)
	if w := ask(here, "GET", "/jobs/site-2.1", "", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "77") ||
		strings.Contains(w.Body.String(), "at home") || strings.Contains(w.Body.String(), `id="cancel"`) ||
		!strings.Contains(w.Body.String(), "by the broker of site-2 alone") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.elseErr = &node.ElsewhereError{Site: "site-2", Peer: "127.0.0.1:1", Role: "owner"}
	w := ask(here, "GET", "/jobs/site-2.1", "", "")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "does not answer") ||
		!strings.Contains(w.Body.String(), "<h1>") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestPageFindsEarlierAttempts: the output of an earlier attempt is shown from
// the site that ran it.
func TestPageFindsEarlierAttempts(t *testing.T) {
	executor, at := member(t, "site-2", Config{})
	executor.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("from site-2, attempt " + strconv.Itoa(int(q.Attempt)))), nil
	}
	f := newFake("site-1")
	here := newServer(f)
	ask(here, "POST", "/v1/jobs", js, `{"command":["echo"]}`)
	f.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		return nil, &node.AnywhereError{Query: q, What: "attempt 1", Sites: []node.ElsewhereError{at}}
	}
	w := ask(here, "GET", "/jobs/site-1.1/log?task=0&attempt=1", "", "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "data: from site-2, attempt 1\n") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// pastFake is a past of two attempts and one sample.
type pastFake struct{ now time.Time }

var _ Recent = pastFake{}

func (p pastFake) Attempts(time.Time, string, int) []archive.Attempt {
	return []archive.Attempt{
		{
			Job: command.JobID{Site: "site-1", Num: 5}, Number: 2, Site: "site-2", Assigned: p.now.Add(-time.Minute),
			Outcome: fsm.EndLost,
			Ended:   p.now,
		},
		{Job: command.JobID{Site: "site-1", Num: 6}, Count: 9, Outcome: fsm.EndCancelled, Ended: p.now},
	}
}

func (p pastFake) EarlierOf(command.JobID, uint32, uint32, int) []archive.Attempt { return nil }

func (p pastFake) Samples(time.Time) []archive.Sample {
	return []archive.Sample{{At: p.now.Add(-time.Hour), Sites: []archive.Standing{{Site: "site-1", Priority: 3}}}}
}

// TestPagesOfThePast: what the archive remembers is drawn; tasks that ended
// without an attempt are not.
func TestPagesOfThePast(t *testing.T) {
	s := New(Config{Recent: pastFake{time.Now()}}, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
	page := ask(s, "GET", "/timeline", "", "").Body.String()
	if !strings.Contains(page, "site-1.5/0 attempt 2 at site-2: lost, 1 min 00 s") || strings.Contains(page, "site-1.6") {
		t.Error(page)
	}
	if page = ask(s, "GET", "/fairness", "", "").Body.String(); !strings.Contains(page, "<polyline") {
		t.Error(page)
	}
}

// Found by review: a site's name at the beginning got a capital.
func TestSentencesKeepNames(t *testing.T) {
	names := []string{"alpha", "site-2"}
	for in, want := range map[string]string{
		"alpha goes first: it lent": "alpha goes first: it lent.", "alpha: full.": "alpha: full.", "site-2's turn": "site-2's turn.",
		"alphabet": "Alphabet.", "waits for alpha": "Waits for alpha.", "2 of 3": "2 of 3.", "so-called": "So-called.",
	} {
		if got := sentence(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
