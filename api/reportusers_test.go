package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/archive"
)

// newUsersWithPast is users whose jobs have ended: one of alice's, two of bob's, one of the site's own, and one of
// another site, whose number is that of alice's.
func newUsersWithPast(t *testing.T) *users {
	t.Helper()
	u := newUsers(t)
	past, err := archive.Open(archive.Config{Dir: t.TempDir(), Site: "site-1", Federation: "f", Now: time.Now, Scope: archive.All})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = past.Close() })
	var ended []archive.Attempt
	end := func(id command.JobID) {
		now := time.Now()
		ended = append(ended, archive.Attempt{
			Job: id, Count: 1, Number: 1, Site: "site-1", Outcome: fsm.EndSucceeded, Final: true,
			Need: command.Resources{MilliCPU: 1000}, Queued: now, Started: now, Ended: now, ChargedMs: 3_600_000,
		})
	}
	for _, who := range []string{"alice", "bob", "bob"} {
		id, err := command.ParseJobID(u.submit(who).ID)
		if err != nil {
			t.Fatal(err)
		}
		if end(id); who == "alice" {
			end(command.JobID{Site: "site-2", Num: id.Num})
		}
	}
	end(command.JobID{Site: "site-1", Num: 1 << 40})
	if err := past.Append(ended, node.EventID{Entry: 1}); err != nil {
		t.Fatal(err)
	}
	u.Server = New(Config{Access: u.store, Archive: past}, u.fake, prometheus.NewRegistry(), zerolog.Nop())
	return u
}

// A report by user tells the operator of all users of the site, and a user of the own jobs alone.
func TestReportByUser(t *testing.T) {
	u := newUsersWithPast(t)
	reader, _, err := u.store.Create(access.Token{Name: "prometheus", Role: access.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	u.tokens["reader"] = reader
	for who, want := range map[string]string{
		"operator": "(none): 2 tasks, 1+1 h; alice: 1 tasks, 1+0 h; bob: 2 tasks, 2+0 h; total: 5 tasks, 4+1 h",
		"alice":    "alice: 1 tasks, 1+0 h; total: 1 tasks, 1+0 h",
		"bob":      "bob: 2 tasks, 2+0 h; total: 2 tasks, 2+0 h",
		"reader":   "(none): 1 tasks, 1+0 h; total: 1 tasks, 1+0 h",
	} {
		w := u.as(who, "GET", "/v1/report?by=user", "")
		var r wire.Report
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", who, w.Code, w.Body)
		}
		var rows []string
		for _, x := range append(r.Rows, r.Total) {
			rows = append(rows, fmt.Sprintf("%s: %d tasks, %v+%v h", x.Key, x.Tasks, x.Own, x.Lent))
		}
		if got := strings.Join(rows, "; "); got != want {
			t.Errorf("%s is told\n%s\nwant\n%s", who, got, want)
		}
	}
}
