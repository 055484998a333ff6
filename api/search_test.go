package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/outputs"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// anywhere has a broker send the questions that are not for it alone to others.
func anywhere(f *fakeBroker, sites ...node.ElsewhereError) {
	f.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		if q.Here {
			return nil, fmt.Errorf("attempt %d is not here: %w", q.Attempt, node.ErrNotFound)
		}
		return nil, &node.AnywhereError{Query: q, What: "attempt 1 of task site-1.1/0", Sites: sites}
	}
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// member is a broker that knows job site-1.1 and no more.
func member(t *testing.T, name string, cfg Config) (*fakeBroker, node.ElsewhereError) {
	t.Helper()
	f := newFake("site-1") // whose job it is
	s := serve(t, f, cfg)
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	f.name = name
	return f, node.ElsewhereError{Site: name, Peer: peerOf(s), Role: "executor"}
}

const earlier = "/v1/jobs/site-1.1/logs?attempt=1&stream=stderr"

// TestSearch: an earlier attempt's log is found at whichever site has it, and
// if nobody has it the answer says whether everybody was asked.
func TestSearch(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	has, atHas := member(t, "site-2", Config{})
	not, atNot := member(t, "site-3", Config{})
	away := node.ElsewhereError{Site: "site-4", Peer: nobody(t)}
	unknown := node.ElsewhereError{Site: "site-5"}
	anywhere(not, node.ElsewhereError{Site: "site-1", Peer: "127.0.0.1:1"}) // it would send us on
	has.index = 99
	has.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		if !q.Here || q.Attempt != 1 || q.Stream != "stderr" {
			t.Errorf("site-2 is asked %+v", q)
		}
		return io.NopCloser(strings.NewReader("found")), nil
	}
	gone, atGone := member(t, "site-6", Config{})
	gone.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		return nil, fmt.Errorf("removed by site site-6: %w", node.ErrOutputGone)
	}
	s := serve(t, asked, Config{})
	for name, c := range map[string]struct {
		sites  []node.ElsewhereError
		status int
		text   []string
	}{
		"found":                 {[]node.ElsewhereError{atNot, atHas}, 200, []string{"found"}},
		"found, one is away":    {[]node.ElsewhereError{away, unknown, atHas}, 200, []string{"found"}},
		"was removed there":     {[]node.ElsewhereError{away, atNot, atGone}, 404, []string{"output-gone", "removed by site site-6"}},
		"nowhere":               {[]node.ElsewhereError{atNot}, 404, []string{"not-found", "attempt 1 of task site-1.1/0"}},
		"nowhere, some is away": {[]node.ElsewhereError{away, atNot}, 503, []string{"executor-unreachable", "site-4", "attempt 1"}},
		"unknown address":       {[]node.ElsewhereError{unknown}, 503, []string{"executor-unreachable", "site-5"}},
	} {
		anywhere(asked, c.sites...)
		w := ask(s, "GET", earlier, "", "")
		for _, text := range c.text {
			if w.Code != c.status || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: %d %s, want %d and %q", name, w.Code, w.Body, c.status, text)
			}
		}
		if w.Code == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", name)
		}
		if index := w.Header().Get(wire.HeaderIndex); (index == "99") != (w.Code == 200) {
			t.Errorf("%s: index %s", name, index)
		}
	}
}

// TestSearchNamesTheAttempt: the latest attempt of a task that waits for its next
// one is asked for by its number, which only the broker that was asked first
// knows. It was not, and so not found.
func TestSearchNamesTheAttempt(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	has, atHas := member(t, "site-2", Config{})
	asked.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		q.Attempt = 3
		return nil, &node.AnywhereError{Query: q, What: "attempt 3", Sites: []node.ElsewhereError{atHas}}
	}
	has.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		if !q.Here || q.Attempt != 3 || q.Stream != "stdout" {
			t.Errorf("site-2 is asked %+v", q)
		}
		return io.NopCloser(strings.NewReader("found")), nil
	}
	s := newServer(asked)
	for _, path := range []string{"/v1/jobs/site-1.1/logs", "/jobs/site-1.1/log"} {
		if w := ask(s, "GET", path, "", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "found") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestSearchIsBounded: a few brokers are asked at a time, for a limited time,
// and a long list of those that do not answer is not sent to the client.
func TestSearchIsBounded(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	slow, at := member(t, "site-2", Config{})
	var mu sync.Mutex
	now, most := 0, 0
	slow.log = func(ctx context.Context, _ node.LogQuery) (io.ReadCloser, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-ctx.Done()
		mu.Lock()
		now--
		mu.Unlock()
		return nil, ctx.Err()
	}
	var sites []node.ElsewhereError
	for range 3 * peers.Width {
		sites = append(sites, at)
	}
	anywhere(asked, sites...)
	s := serve(t, asked, Config{PeerTimeout: 2 * time.Second})
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+earlier, "", nil)
	var p wire.Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 503 || !strings.Contains(p.Detail, fmt.Sprintf("and %d more", len(sites)-5)) {
		t.Errorf("%s: %+v", res.Status, p)
	}
	mu.Lock()
	defer mu.Unlock()
	if most == 0 || most > peers.Width {
		t.Errorf("%d brokers were asked at a time, want up to %d", most, peers.Width)
	}
}

// silentSite is a broker that accepts connections and answers nothing; asked has one for
// each question that it got.
func silentSite(t *testing.T) (at node.ElsewhereError, asked chan struct{}) {
	t.Helper()
	asked = make(chan struct{}, 1000)
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-stop
	}))
	t.Cleanup(func() { close(stop); s.Close() })
	return node.ElsewhereError{Site: "site-9", Peer: s.Listener.Addr().String(), Role: "executor"}, asked
}

// TestSilentSiteHoldsUpNobody: 64 clients that ask for outputs of a site which accepts
// connections and answers nothing held all searches' places for PeerTimeout each, and
// others' searches failed meanwhile.
func TestSilentSiteHoldsUpNobody(t *testing.T) {
	const clients = 64
	asked, _ := member(t, "site-1", Config{})
	has, atHas := member(t, "site-2", Config{})
	has.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("found")), nil
	}
	silent, questions := silentSite(t)
	asked.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		sites := []node.ElsewhereError{silent}
		if q.Stream == "stderr" {
			sites = append(sites, atHas)
		}
		return nil, &node.AnywhereError{Query: q, What: "attempt 1", Sites: sites}
	}
	s := serve(t, asked, Config{PeerTimeout: time.Hour})
	ctx, leave := context.WithCancel(limit(t))
	var waiting sync.WaitGroup
	for range clients {
		waiting.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/v1/jobs/site-1.1/logs?attempt=1", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				t.Errorf("the silent site's output: %s", res.Status)
				_ = res.Body.Close()
			}
		})
	}
	for range outputs.MaxSearches { // all places are taken
		<-questions
	}
	if w := ask(s, "GET", earlier, "", ""); w.Code != 200 || w.Body.String() != "found" || ctx.Err() != nil {
		t.Errorf("beside them: %d %s %v", w.Code, w.Body, ctx.Err())
	}
	leave()
	waiting.Wait()
}

// TestFoundLogIsStreamed: what is found arrives as it is written, a log that
// breaks off does not look whole, and a client that leaves ends it.
func TestFoundLogIsStreamed(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	has, at := member(t, "site-2", Config{})
	anywhere(asked, at)
	s := serve(t, asked, Config{})
	feed, closed := follow(has)
	res := request1(t, limit(t), "GET", "http://"+s.Addr()+earlier+"&follow=true", "", nil)
	for range 2 {
		if _, err := io.WriteString(feed, "live\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != "live\n" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	_ = res.Body.Close()
	<-closed

	feed, _ = follow(has)
	go func() {
		_, _ = io.WriteString(feed, "half")
		_ = feed.CloseWithError(errDisk)
	}()
	res = request1(t, limit(t), "GET", "http://"+s.Addr()+earlier, "", nil)
	if got, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %q without an error", got)
	}
}

// stranger is a broker that answers as it likes.
func stranger(t *testing.T, name string, said wire.Problem) node.ElsewhereError {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.HeaderSite, name)
		if strings.HasSuffix(r.URL.Path, "/kept") {
			_ = json.NewEncoder(w).Encode(wire.List[wire.Kept]{Items: []wire.Kept{{Task: 100, Problem: &said}}})
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(said)
	}))
	t.Cleanup(s.Close)
	return node.ElsewhereError{Site: name, Peer: s.Listener.Addr().String(), Role: "executor"}
}

// TestOthersChooseNoStatus: what another broker says of an output becomes an answer's
// status only if it is an error's, and its words stay on a line. One of 7 broke the
// connection, and one of 200 was an output.
func TestOthersChooseNoStatus(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	s := serve(t, asked, Config{})
	for status, want := range map[int][2]int{
		0: {404, 503}, 7: {404, 503}, 200: {404, 503}, 1000: {404, 503},
		404: {404, 404},
	} {
		at := stranger(t, "site-2", wire.Problem{
			Type: wire.ProblemPrefix + problem.OutputGone, Title: "The output is gone", Detail: "\x1b[2Jgone",
			Status: status,
		})
		keeps(asked, nil)
		asked.mayHave = []node.ElsewhereError{at}
		newest := ask(s, "GET", "/v1/jobs/site-1.1/logs", "", "")
		anywhere(asked, at)
		found := ask(s, "GET", earlier, "", "")
		if got := [2]int{found.Code, newest.Code}; got != want ||
			strings.Contains(found.Body.String()+newest.Body.String(), "u001b") {
			t.Errorf("status %d: %v, want %v: %s %s", status, got, want, found.Body, newest.Body)
		}
	}
}

// TestUnreadableHereIsSaid: where the asked broker cannot tell whether it has an output,
// and no other has it, that is the answer, and not that nobody has it.
func TestUnreadableHereIsSaid(t *testing.T) {
	asked, _ := member(t, "site-1", Config{})
	not, atNot := member(t, "site-2", Config{})
	has, atHas := member(t, "site-3", Config{})
	anywhere(not)
	has.log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("found")), nil
	}
	s := serve(t, asked, Config{})
	for want, sites := range map[string][]node.ElsewhereError{problem.OutputUnreadable: {atNot}, "found": {atNot, atHas}} {
		asked.log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
			return nil, &node.AnywhereError{
				Query: q, What: "it", Sites: sites,
				Here: fmt.Errorf("cannot be read: %w", node.ErrOutputUnreadable),
			}
		}
		if w := ask(s, "GET", earlier, "", ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s, want %s", w.Code, w.Body, want)
		}
	}
}
