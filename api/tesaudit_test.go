package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// TestAuditNamesTESTasks: the one that was made, and the one that was cancelled, as jobs are named.
func TestAuditNamesTESTasks(t *testing.T) {
	s := serve(t, newFake("site-1"), Config{})
	made := ask(s, "POST", tesTasks, js, tesBody("n", ""))
	if at := made.Header().Get("Location"); at != tesTasks+"/site-1.1" {
		t.Errorf("%q", at)
	}
	for path, want := range map[string][]string{
		tesTasks: {"site-1.1"}, tesTasks + "/site-1.9:cancel": {"site-1.9"}, tesTasks + "/site-1.9%3Acancel": {"site-1.9"},
	} {
		answered := http.Header{}
		if path == tesTasks {
			answered = made.Header()
		}
		if got := targetsOf(httptest.NewRequest(http.MethodPost, path, nil), answered); !slices.Equal(got, want) {
			t.Errorf("%s: %q", path, got)
		}
	}
}
