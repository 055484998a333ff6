package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// readPaths show the replicated state.
var readPaths = []string{
	"/v1/jobs", "/v1/jobs/site-1.1", "/v1/jobs/site-1.1/tasks", "/v1/jobs/site-1.1/why", "/v1/jobs/site-1.1/graph", "/v1/sites", "/v1/queue", "/v1/quota", "/v1/ledger", "/v1/plausibility", "/v1/policy", "/v1/status",
}

// readable is a broker with a job and a state of some freshness.
func readable(t *testing.T, fresh node.Freshness, confirm error) (*fakeBroker, *Server) {
	t.Helper()
	f := newFake("site-1")
	f.found(t)
	s := newServer(f)
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	f.fresh, f.confirm = fresh, confirm
	return f, s
}

// staleBody is the part of every body that tells.
type staleBody struct {
	Stale bool   `json:"stale"`
	AgeMs *int64 `json:"age_ms"`
}

func bodyOf(t *testing.T, text string) (b staleBody) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return b
}

// old is how old a stale state is here, 151,200 s: however long a test takes, an answer's age is the same in hours.
const old = 42 * time.Hour

// isOld reports whether that is its age in seconds.
func isOld(age float64) bool { return age >= old.Seconds() && age < (old+time.Hour).Seconds() }

// TestFreshAnswers have an age and say no more about it.
func TestFreshAnswers(t *testing.T) {
	_, s := readable(t, node.FreshnessOf(1500*time.Millisecond, time.Hour), nil)
	for _, path := range readPaths {
		w := ask(s, "GET", path, "", "")
		age, err := strconv.ParseFloat(w.Header().Get(wire.HeaderAge), 64)
		if w.Code != 200 || err != nil || age < 1.5 || age > 3600 || w.Header().Get(wire.HeaderStale) != "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if b := bodyOf(t, w.Body.String()); b.Stale || b.AgeMs != nil {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// TestStaleAnswersSaySo: in headers and, but for the policy, which is also sent to
// a broker, in the body.
func TestStaleAnswersSaySo(t *testing.T) {
	_, s := readable(t, node.FreshnessOf(old, 6*time.Second), node.ErrNoQuorum)
	for _, path := range readPaths {
		w := ask(s, "GET", path, "", "")
		age, err := strconv.ParseFloat(w.Header().Get(wire.HeaderAge), 64)
		if w.Code != 200 || err != nil || !isOld(age) || w.Header().Get(wire.HeaderStale) != "true" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if b := bodyOf(t, w.Body.String()); path != "/v1/policy" &&
			(!b.Stale || b.AgeMs == nil || !isOld(float64(*b.AgeMs)/1000)) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	w := ask(s, "GET", "/queue", "", "")
	if !strings.Contains(w.Body.String(), "as of 42h") ||
		!strings.Contains(w.Body.String(), " ago: this broker has no contact with the leader") {
		t.Errorf("the page does not tell: %s", w.Body)
	}
}

// TestNoContactYetIsNoAge: a broker that never had contact says that, not 0.
func TestNoContactYetIsNoAge(t *testing.T) {
	_, s := readable(t, node.Freshness{Lease: 6 * time.Second}, node.ErrNoQuorum)
	w := ask(s, "GET", "/v1/status", "", "")
	if b := bodyOf(t, w.Body.String()); !b.Stale || b.AgeMs != nil || w.Header().Get(wire.HeaderAge) != "unknown" ||
		w.Header().Get(wire.HeaderStale) != "true" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	w = ask(s, "GET", "/v1/status?max_staleness=1h", "", "")
	if w.Code != 503 || !strings.Contains(w.Body.String(), "no contact with the leader since this broker started") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestMaxStaleness: what is too old is confirmed by the leader or refused, on every
// read; 0 is confirmed always.
func TestMaxStaleness(t *testing.T) {
	for _, path := range readPaths {
		f, s := readable(t, node.FreshnessOf(old, 6*time.Second), node.ErrNoQuorum)
		for most, want := range map[string]int{"43h": 200, "5s": 503, "0": 503, "0s": 503, "50h": 200} {
			w := ask(s, "GET", path+"?max_staleness="+most, "", "")
			if w.Code != want {
				t.Errorf("%s, at most %s: %d %s", path, most, w.Code, w.Body)
			}
			if want != 503 {
				continue
			}
			var p wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Type != wire.ProblemPrefix+"stale" ||
				w.Header().Get("Retry-After") != "2" ||
				!strings.Contains(p.Detail, "it is 151") || w.Header().Get("Content-Type") != wire.TypeProblem {
				t.Errorf("%s, at most %s: %v %s", path, most, w.Header(), w.Body)
			}
		}
		f.mu.Lock()
		f.confirm = nil
		f.mu.Unlock()
		w := ask(s, "GET", path+"?max_staleness=0", "", "")
		age, err := strconv.ParseFloat(w.Header().Get(wire.HeaderAge), 64)
		if w.Code != 200 || err != nil || age > 3600 {
			t.Errorf("%s, confirmed: %d %v", path, w.Code, w.Header())
		}
	}
}

// TestMaxStalenessFromOutside: what is no age is refused with field and value.
func TestMaxStalenessFromOutside(t *testing.T) {
	_, s := readable(t, node.FreshnessOf(0, 6*time.Second), nil)
	for _, path := range readPaths {
		for _, bad := range []string{"", "-1s", "5", "soon", "1e9h", "NaN", "%00", "0s&max_staleness=1s"} {
			w := ask(s, "GET", path+"?max_staleness="+bad, "", "")
			var p wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); w.Code != 400 || err != nil || p.Field != "max_staleness" {
				t.Errorf("%s %q: %d %s", path, bad, w.Code, w.Body)
			}
		}
	}
	if w := ask(s, "GET", "/v1/jobs/site-1.1?max_staleness=soon", "", ""); !strings.Contains(w.Body.String(), `"value":"soon"`) {
		t.Errorf("%s", w.Body)
	}
}

// TestBlockingReadIsAsFreshAsItsAnswer: the age is that after the wait, and so is
// what is refused.
func TestBlockingReadIsAsFreshAsItsAnswer(t *testing.T) {
	f, s := readable(t, node.FreshnessOf(2*time.Second, 6*time.Second), nil)
	index := ask(s, "GET", "/v1/sites", "", "").Header().Get(wire.HeaderIndex)
	w := ask(s, "GET", "/v1/sites?max_staleness=0&wait=1ms&index="+index, "", "")
	if age, err := strconv.ParseFloat(w.Header().Get(wire.HeaderAge), 64); w.Code != 200 || err != nil || age >= 2 {
		t.Errorf("%d, age %g", w.Code, age)
	}
	f.mu.Lock()
	f.fresh, f.confirm = node.FreshnessOf(old, 6*time.Second), node.ErrNoQuorum
	f.mu.Unlock()
	if w = ask(s, "GET", "/v1/sites?max_staleness=5s&wait=5m&index="+index, "", ""); w.Code != 503 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestForwardedAnswersKeepTheirAge: it is that of the broker that answered.
func TestForwardedAnswersKeepTheirAge(t *testing.T) {
	owner := newFake("site-2")
	there := serve(t, owner, Config{})
	ask(there, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	owner.fresh, owner.confirm = node.FreshnessOf(old, 6*time.Second), node.ErrNoQuorum
	asked := newFake("site-1")
	asked.elseErr = &node.ElsewhereError{Site: "site-2", Peer: peerOf(there), Role: "owner"}
	here := serve(t, asked, Config{})
	for path, want := range map[string]int{"": 200, "?max_staleness=5s": 503} {
		res := request1(t, limit(t), "GET", "http://"+here.Addr()+"/v1/jobs/site-2.1"+path, "", nil)
		ages := res.Header.Values(wire.HeaderAge)
		age, err := strconv.ParseFloat(strings.Join(ages, " "), 64)
		if res.StatusCode != want || err != nil || !isOld(age) ||
			fmt.Sprint(res.Header.Values(wire.HeaderStale)) != "[true]" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
	owner.mu.Lock()
	owner.fresh, owner.confirm = node.Freshness{}, nil
	owner.mu.Unlock()
	asked.mu.Lock()
	asked.fresh = node.FreshnessOf(2*old, 6*time.Second)
	asked.mu.Unlock()
	if res := request1(t, limit(t), http.MethodGet, "http://"+here.Addr()+"/v1/jobs/site-2.1", "", nil); res.Header.Get(wire.HeaderStale) != "" {
		t.Errorf("a fresh broker's answer, forwarded by a stale one: %v", res.Header)
	}
}
