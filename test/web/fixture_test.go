package web

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/api/web/webtest"
	"github.com/cloudshare/cloudshare/fsm"
)

// Bounds of a page with 100 sites and 100,000 jobs, from asking for it until the
// browser has built it.
const (
	sites, jobs = 100, 100_000
	mostTime    = 1500 * time.Millisecond
)

var paths = map[string]string{
	"federation": "/", "fairness": "/fairness", "queue": "/queue", "jobs": "/jobs", "search": "/jobs?q=frame+77", "nothing": "/jobs?q=nowhere",
	"job": "/jobs/site-070.1000", "waiting": "/jobs/site-100.1000", "timeline": "/timeline", "long-timeline": "/timeline?last=24h", "events": "/events",
}

func serveFixture(t *testing.T) string {
	t.Helper()
	broker := webtest.New(sites, jobs)
	for i := range 200 {
		for n, kind := range fsm.EventKinds() {
			broker.Tell(fsm.Event{
				Kind: kind, Site: fmt.Sprintf("site-%03d", 1+(i+n)%sites), Job: fsm.JobID{Site: "site-007", Num: uint64(1 + i)}, Task: uint32(n), Count: uint32(i % 3),
				Attempt: 1, Need: fsm.Resources{MilliCPU: 1000}, RunMs: int64(n * 700),
			})
		}
	}
	srv := httptest.NewServer(webtest.Serve(web.New(webtest.Config(broker))))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// TestLargeFederation: every page is there soon, on a desk and on a phone, by day
// and by night, and the browser has nothing to complain of.
func TestLargeFederation(t *testing.T) {
	url := serveFixture(t)
	b := open(t)
	for name, path := range paths {
		b.look(1280, 900, "light")
		took := b.visit(url + path)
		t.Logf("%-14s %s", name, took.Round(time.Millisecond))
		if took > mostTime {
			t.Errorf("%s took %s, more than %s", path, took, mostTime)
		}
		b.shoot(name + "-light")
		b.audit(name + " by day")
		b.look(1280, 900, "dark")
		b.shoot(name + "-dark")
		b.audit(name + " by night")
		b.look(390, 844, "light")
		b.shoot(name + "-phone")
		if over := read[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s: a phone has to scroll sideways by %d", name, over)
		}
	}
	b.quiet()
}
