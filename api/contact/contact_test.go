package contact

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/api/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers serves one answer to every question, and returns its host:port.
func answers(t *testing.T, status int, body any) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// dial reaches whoever is at an address: the peer port would make sure of the site.
func dial(ctx context.Context, _, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

func gone(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(nil)
	srv.Close()
	return strings.TrimPrefix(srv.URL, "http://")
}

// TestWhoAnswers: whoever is not the site of the federation is told apart.
func TestWhoAnswers(t *testing.T) {
	c := New(Config{Site: "a", Federation: "fed", Dial: dial})
	for name, tc := range map[string]struct {
		at, want string
	}{
		"the site":           {answers(t, 200, wire.Introduction{Site: "b", Federation: "fed"}), ""},
		"nobody":             {gone(t), "it does not answer there (dial tcp "},
		"no name":            {"nobody.invalid:1", "it does not answer there (dial tcp: lookup nobody.invalid"},
		"another site":       {answers(t, 200, wire.Introduction{Site: "c", Federation: "fed"}), `site "c" answers there`},
		"another federation": {answers(t, 200, wire.Introduction{Site: "b", Federation: "x\ny"}), `site "b" of another federation ("x\ny") answers there`},
		"another server":     {answers(t, 200, "welcome"), "no broker's API answers there, but HTTP 200"},
		"an error":           {answers(t, 404, wire.Problem{}), "no broker's API answers there, but HTTP 404"},
		"a redirect":         {answers(t, 302, nil), "no broker's API answers there, but HTTP 302"},
		"a long answer":      {answers(t, 200, strings.Repeat("x", 1<<20)), "no broker's API answers there, but HTTP 200"},
		"no address":         {"a b", "it does not answer there (dial tcp: address a b: missing port"},
	} {
		_, err := c.askSite(t.Context(), Site{ID: "b", Peer: tc.at})
		if (err == nil) != (tc.want == "") || err != nil &&
			(!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	you, err := c.askSite(t.Context(), Site{ID: "b", Peer: answers(t, 200, wire.Introduction{
		Site: "b", Federation: "fed", You: &wire.Contact{Address: "x:1", Why: "a\nb" + strings.Repeat("c", 1000)},
	})})
	if err != nil || you.Reached || len(you.Why) != 500 || strings.Contains(you.Why, "\n") {
		t.Errorf("%+v, %v", you, err)
	}
}

// TestPatience: a site that is silent is told of once it was so for long enough, once
// in a while; a site that comes back, or with another address, begins again.
func TestPatience(t *testing.T) {
	var log bytes.Buffer
	b := Site{ID: "b", Peer: gone(t), Incarnation: 1}
	present := []Site{b, {ID: "a", Peer: "own:1"}, {ID: "quiet"}}
	c := New(Config{
		Site: "a", Federation: "fed", Dial: dial, Patience: 7 * time.Second, Sites: func() []Site { return present },
		Logger: zerolog.New(&log),
	})
	now := time.Unix(1000, 0)
	if c.Of("b") != nil {
		t.Error("known before it was asked")
	}
	rounds := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Second) {
			for _, s := range c.dueSites(now) {
				_, err := c.askSite(t.Context(), s)
				c.learn(s, nil, err, now)
			}
		}
	}
	rounds(6 * time.Second)
	if c.Of("b") != nil || log.Len() > 0 {
		t.Errorf("%+v too early: %s", c.Of("b"), &log)
	}
	rounds(time.Minute)
	got := c.Of("b")
	if got == nil || got.Reached || got.Address != b.Peer || !strings.Contains(got.Why, "connection refused): correct `advertise` or `peer` of b and restart it") {
		t.Errorf("%+v", got)
	}
	if n := strings.Count(log.String(), "is not reached"); n != 1 {
		t.Errorf("%d lines: %s", n, &log)
	}
	rounds(sayAgain)
	if n := strings.Count(log.String(), "is not reached"); n != 2 {
		t.Errorf("%d lines: %s", n, &log)
	}
	if who := c.Introduce("b"); who.You == nil || who.You.Reached || who.Site != "a" || who.Federation != "fed" {
		t.Errorf("%+v", who)
	}
	c.learn(b, nil, nil, now)
	if got = c.Of("b"); got == nil || !got.Reached || !strings.Contains(log.String(), "is reached again") {
		t.Errorf("%+v: %s", got, &log)
	}
	present = []Site{{ID: "b", Peer: b.Peer, Incarnation: 2}}
	c.dueSites(now)
	if c.Of("b") != nil || len(c.known) != 1 {
		t.Errorf("what an earlier incarnation was counts: %+v", c.known)
	}
}

// TestToldByOthers: a site learns that it is not reached from those that it asks.
func TestToldByOthers(t *testing.T) {
	var log bytes.Buffer
	b := Site{ID: "b", Peer: answers(t, 200, wire.Introduction{
		Site: "b", Federation: "fed",
		You: &wire.Contact{Address: "own:1", Why: "nobody answers there"},
	})}
	own := "own:1"
	c := New(Config{
		Site: "a", Federation: "fed", Dial: dial, Sites: func() []Site { return []Site{b, {ID: "a", Peer: own}} },
		Logger: zerolog.New(&log),
	})
	now := time.Unix(1000, 0)
	c.round(t.Context(), now)
	if got := c.Unreached(); len(got) != 1 || got[0] != (wire.Unreached{By: "b", Address: "own:1", Why: "nobody answers there"}) {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(log.String(), "does not reach this broker's API") || !strings.Contains(log.String(), "own:1") {
		t.Errorf("%s", &log)
	}
	c.learn(b, &wire.Contact{Reached: true, Address: own}, nil, now)
	if list := c.dueSites(now.Add(time.Minute)); len(list) != 0 {
		t.Errorf("%v is asked again though all is well", list)
	}
	own = "own:2" // as of the state, which may know it later than this broker runs
	if list := c.dueSites(now.Add(time.Minute)); len(list) != 1 {
		t.Error("nobody is asked of the new address")
	}
	c.learn(b, &wire.Contact{Reached: true, Address: "own:1"}, nil, now)
	if c.known["b"].pause >= allWell || len(c.Unreached()) != 0 {
		t.Errorf("a word on the former address counts: %+v", c.known["b"])
	}
	c.learn(b, &wire.Contact{Reached: true, Address: own}, nil, now)
	if got := c.Unreached(); len(got) != 0 || c.known["b"].pause != allWell {
		t.Errorf("%+v", c.known["b"])
	}
}

// TestManySites: a round asks a bounded number, and all get their turn.
func TestManySites(t *testing.T) {
	var present []Site
	for i := range 3*atOnce + 1 {
		present = append(present, Site{ID: string(rune('b' + i)), Peer: "x:1"})
	}
	c := New(Config{Site: "a", Dial: dial, Sites: func() []Site { return present }, Logger: zerolog.Nop()})
	asked, now := map[string]bool{}, time.Unix(1000, 0)
	for range 4 {
		list := c.dueSites(now)
		if len(list) > atOnce {
			t.Fatalf("%d at once", len(list))
		}
		for _, s := range list {
			asked[s.ID] = true
			c.learn(s, nil, nil, now)
		}
	}
	if len(asked) != len(present) {
		t.Errorf("%d of %d were asked", len(asked), len(present))
	}
}
