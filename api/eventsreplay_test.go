package api

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/cloudshare/cloudshare/api/wire"
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
			if w := ask(s, "GET", target, "", ""); w.Code != 503 || w.Header().Get("Content-Type") != wire.TypeProblem {
				t.Errorf("%s: %d %q", target, w.Code, w.Body)
			}
		}
	})
}
