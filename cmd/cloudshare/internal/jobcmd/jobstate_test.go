package jobcmd

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Found by use: a job with 6 of 60 done was just queued, and a draining site just alive.
func TestStatesSayMore(t *testing.T) {
	for want, j := range map[string]wire.Job{
		"queued": {State: "queued"}, "queued (6/60 done, waiting)": {State: "queued", Progress: "6/60 done, waiting"}, "running": {State: "running", Progress: "6/60 done, 3 running"},
	} {
		if got := stateText(j); got != want {
			t.Errorf("%+v: %q, want %q", j, got, want)
		}
	}
}
