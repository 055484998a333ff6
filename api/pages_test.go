package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
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
	ask(there, "POST", "/v1/jobs", js, `{"command":["echo"],"name":"at home"}`)
	f := newFake("site-1")
	f.elseErr = &node.ElsewhereError{Site: "site-2", HTTP: there.Addr(), Role: "owner"}
	here := newServer(f)
	if w := ask(here, "GET", "/jobs/site-2.1", "", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "at home") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.elseErr = &node.ElsewhereError{Site: "site-2", HTTP: "127.0.0.1:1", Role: "owner"}
	w := ask(here, "GET", "/jobs/site-2.1", "", "")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "does not answer") || !strings.Contains(w.Body.String(), "<h1>") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
