package main

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// Found by use: a bad value that the broker found exited 5, as if it were the
// federation that stood in the way; one that the command found itself, 2.
func TestBadValuesAreUsageWhoeverFindsThem(t *testing.T) {
	for name, want := range map[string]int{
		"malformed": exitUsage, "invalid-job": exitUsage, "invalid-policy": exitUsage, "invalid-request": exitUsage, "invalid-parameter": exitUsage, "bad-cursor": exitUsage,
		"unfit": exitRefused, "key-reused": exitRefused, "quota": exitRefused, "no-quorum": exitRefused, "owner-unreachable": exitUnreachable,
	} {
		p := &client.Problem{Type: wire.ProblemPrefix + name, Status: 422}
		if code := codeOf(p); code != want {
			t.Errorf("%s: exit %d, want %d", name, code, want)
		}
	}
}

// Found by use: a job with 6 of 60 done was just queued, and a draining site just alive.
func TestStatesSayMore(t *testing.T) {
	for want, j := range map[string]wire.Job{
		"queued": {State: "queued"}, "queued (6/60 done, waiting)": {State: "queued", Progress: "6/60 done, waiting"}, "running": {State: "running", Progress: "6/60 done, 3 running"},
	} {
		if got := stateText(j); got != want {
			t.Errorf("%+v: %q, want %q", j, got, want)
		}
	}
	for want, s := range map[string]wire.Site{"alive": {State: "alive"}, "alive, draining": {State: "alive", Closed: "draining"}} {
		if got := siteText(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
