package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node"
)

// TestEventsWaitForTheReplay: a stream that is opened before the state is known
// is told to come again, not the whole log.
func TestEventsWaitForTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("site-1")
		f.outdated = fmt.Errorf("%w: no quorum was found", node.ErrNotReady)
		s := newServer(f)
		for _, target := range []string{"/v1/events", "/v1/events?from=2554.1", "/v1/events?follow=false"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Host = "localhost"
			if err := s.events(w, r, nil); err == nil || problem.Of(err).Status != 503 || w.Body.Len() > 0 {
				t.Errorf("%s: %v %q", target, err, w.Body)
			}
		}
	})
}
