package jobcmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// TestAfterFlag: ID[:WHEN] becomes what the API takes, and is shown as it was given.
func TestAfterFlag(t *testing.T) {
	got, err := json.Marshal(afterGiven([]string{"site-1.3", "site-1.4:any", "site-1.5:"}))
	const want = `[{"job":"site-1.3"},{"job":"site-1.4","when":"any"},{"job":"site-1.5","when":""}]`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	shown := afterWords([]wire.SpecAfter{{Job: "site-1.3", When: "ok"}, {Job: "site-1.4", When: "notok"}})
	if shown != "site-1.3, site-1.4:notok" {
		t.Error(shown)
	}
	var text strings.Builder
	showAwaited(&text, &wire.AwaitedBy{Count: 12, Jobs: []string{"site-1.8", "site-1.9"}})
	if got := text.String(); !strings.Contains(got, "site-1.8, site-1.9 and 10 others") {
		t.Error(got)
	}
}

// TestAwaitedByOthersJobs: those of other users are counted, and nothing is listed beside them.
func TestAwaitedByOthersJobs(t *testing.T) {
	var text strings.Builder
	showAwaited(&text, &wire.AwaitedBy{Count: 2})
	if got := strings.Join(strings.Fields(text.String()), " "); got != "awaited by 2 jobs" {
		t.Errorf("%q", got)
	}
}
