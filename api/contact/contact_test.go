package contact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	c.known["b"].reached, c.known["b"].why = false, "gone"
	present = []Site{{ID: "b", Peer: b.Peer, Incarnation: 2}}
	c.dueSites(now)
	if c.Of("b") != nil || len(c.known) != 1 {
		t.Errorf("that an earlier incarnation was not reached counts: %+v", c.known)
	}
}

// TestRegisteringAgainAsksNobody: a site whose lease ran out registers again where it was. Each such registration had
// it asked by all, and all by it, so many that ran out at once on too few processors kept each other from the next.
func TestRegisteringAgainAsksNobody(t *testing.T) {
	const n = 5
	w := assemble(t, n)
	w.run(t, time.Minute)
	asked := w.asked
	for i := range w.sites {
		w.sites[i].Incarnation++
	}
	w.run(t, time.Minute)
	if w.asked != asked {
		t.Errorf("%d questions when %d sites had registered again where they were", w.asked-asked, n)
	}
	for id, c := range w.checkers {
		for other, r := range c.known {
			if r.site.Incarnation != 1 || c.Of(other) == nil || r.you == nil {
				t.Errorf("%s of %s: %+v", id, other, r)
			}
		}
	}
	w.sites[0].Incarnation++
	c := w.checkers["b"]
	c.dueSites(w.now)
	c.learn(w.sites[0], nil, errors.New("gone"), w.now) // within its patience of 0 s
	w.sites[0].Peer = "moved:1"
	if c.dueSites(w.now); c.Of("a") != nil {
		t.Error("what a site's former address was counts")
	}
	w.sites[1].Peer = "moved:2"
	if list := c.dueSites(w.now); len(list) != n-1 {
		t.Errorf("%d are asked by one that has moved, want all others", len(list))
	}
}

// TestBusySitesAreAskedLess: late answers halve the questions of the next round, down to one, and each round without
// one adds a question.
func TestBusySitesAreAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answerAfter := 2 * lateAfter
		slow := func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-time.After(answerAfter):
				return nil, errors.New("nobody is there")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var present []Site
		for i := range 10 * atOnce {
			present = append(present, Site{ID: fmt.Sprint("s", i), Peer: "x:1"})
		}
		c := New(Config{Site: "a", Dial: slow, Sites: func() []Site { return present }, Logger: zerolog.Nop()})
		var most []int
		for range 5 {
			most = append(most, len(c.dueSites(time.Now())))
			c.round(t.Context(), time.Now())
		}
		answerAfter = lateAfter / 2
		for range 9 {
			most = append(most, len(c.dueSites(time.Now())))
			c.round(t.Context(), time.Now())
		}
		if want := []int{8, 4, 2, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8}; !slices.Equal(most, want) {
			t.Errorf("asked %v, want %v", most, want)
		}
	})
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

// crew is checkers that ask each other as brokers do, at an artificial time.
type crew struct {
	sites    []Site
	checkers map[string]*Checker
	asked    int
	now      time.Time
}

// assemble has n sites register at once.
func assemble(t *testing.T, n int) *crew {
	t.Helper()
	w := &crew{checkers: map[string]*Checker{}, now: time.Unix(1000, 0)}
	for i := range n {
		id := string(rune('a' + i))
		c := New(Config{
			Site: id, Federation: "fed", Dial: dial, Logger: zerolog.Nop(), Sites: func() []Site { return w.sites },
		})
		srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			w.asked++
			from := r.URL.Query().Get("from")
			c.DialedBy(from, r.Header.Get(wire.HeaderAt))
			_ = json.NewEncoder(out).Encode(c.Introduce(from))
		}))
		t.Cleanup(srv.Close)
		w.checkers[id] = c
		w.sites = append(w.sites, Site{ID: id, Peer: strings.TrimPrefix(srv.URL, "http://")})
	}
	return w
}

// run has all ask, each second, who is due then.
func (w *crew) run(t *testing.T, d time.Duration) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(time.Second) {
		for _, s := range w.sites {
			c := w.checkers[s.ID]
			for _, other := range c.dueSites(w.now) {
				you, err := c.askSite(t.Context(), other)
				if err != nil {
					t.Fatal(err)
				}
				c.learn(other, you, nil, w.now)
			}
		}
	}
}

// TestManyJoinAndEachPairAsksTwice: sites that join at once ask each other once each way. Before a dial told that its
// site reaches the one it asks, each asked each other one up to three times, and a join cost as many handshakes.
func TestManyJoinAndEachPairAsksTwice(t *testing.T) {
	const n = 2*atOnce + 1
	w := assemble(t, n)
	w.run(t, time.Minute)
	if w.asked != n*(n-1) {
		t.Errorf("%d questions among %d sites, want one each way: %d", w.asked, n, n*(n-1))
	}
	for id, c := range w.checkers {
		for other, r := range c.known {
			if !r.reached || r.you == nil || !r.you.Reached {
				t.Errorf("%s of %s: %+v", id, other, r)
			}
		}
	}
	w.run(t, allWell)
	if w.asked != 2*n*(n-1) {
		t.Errorf("%d questions ten minutes later, want %d: to be asked must not keep a site from asking", w.asked, 2*n*(n-1))
	}
}

// TestDialedBy: a dial counts for the address that is registered now, until the other site says otherwise.
func TestDialedBy(t *testing.T) {
	own, b := "own:1", Site{ID: "b", Peer: "b:1"}
	c := New(Config{
		Site: "a", Federation: "fed", Dial: dial, Logger: zerolog.Nop(),
		Sites: func() []Site { return []Site{b, {ID: "a", Peer: own}} },
	})
	now := time.Unix(1000, 0)
	c.DialedBy("b", own) // it is not known yet
	c.dueSites(now)
	for _, c1 := range []struct{ site, at string }{{"b", ""}, {"b", "own:0"}, {"z", own}, {"a", own}} {
		if c.DialedBy(c1.site, c1.at); c.known["b"].you != nil {
			t.Errorf("a dial by %s at %q counts", c1.site, c1.at)
		}
	}
	c.DialedBy("b", own)
	if list := c.dueSites(now); len(list) != 1 {
		t.Error("who dials is not asked whether it is where it says")
	}
	c.learn(b, nil, nil, now) // as it answered before it dialed
	if r := c.known["b"]; r.pause != allWell || r.you == nil || !r.you.Reached {
		t.Errorf("%+v", r)
	}
	c.learn(b, &wire.Contact{Address: own, Why: "nobody answers there"}, nil, now)
	if len(c.Unreached()) != 1 {
		t.Error("a dial counts for more than the site's word after it")
	}
	c.DialedBy("b", own)
	if r := c.known["b"]; len(c.Unreached()) != 0 || !r.due.Equal(now.Add(allWell)) {
		t.Errorf("%+v", r)
	}
	own = "own:2"
	if c.dueSites(now); c.known["b"].you != nil {
		t.Error("a dial at the former address counts")
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
