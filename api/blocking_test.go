package api

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestBlockingReads: a read after an entry is answered once more has happened,
// with the index from which to go on.
func TestBlockingReads(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	f.found(t)
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	f.mu.Lock()
	f.index = 2
	f.mu.Unlock()
	many := submitted(1)
	many.Jobs[0].Count = 100
	f.apply(t, many)
	num := uint64(1)
	for _, path := range []string{
		"/v1/jobs", "/v1/jobs/site-1.1", "/v1/jobs/site-1.1/tasks", "/v1/jobs/site-1.1/why", "/v1/jobs/site-1.1/graph", "/v1/sites", "/v1/queue", "/v1/quota", "/v1/ledger", "/v1/status",
	} {
		plain := ask(s, "GET", path, "", "")
		index := plain.Header().Get(wire.HeaderIndex)
		if plain.Code != 200 || plain.Header().Get(wire.HeaderHome) == "" ||
			len(plain.Header().Values(wire.HeaderIndex)) != 1 {
			t.Fatalf("%s: %d %v", path, plain.Code, plain.Header())
		}
		if w := ask(s, "GET", path+"?index="+index+"&wait=1ms", "", ""); w.Code != 200 || w.Header().Get(wire.HeaderIndex) != index {
			t.Errorf("%s: nothing happened: %d at %s", path, w.Code, w.Header().Get(wire.HeaderIndex))
		}
		got := make(chan string)
		go func() {
			res, err := http.Get("http://" + s.Addr() + path + "?index=" + index)
			if err != nil {
				t.Error(err)
				close(got)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			got <- res.Header.Get(wire.HeaderIndex)
		}()
		awaitWaiters(t, s, 1)
		f.apply(t) // a tick tells of nothing
		select {
		case <-got:
			t.Fatalf("%s: a tick answered it", path)
		case <-time.After(5 * time.Millisecond):
		}
		num++
		ofOne := !strings.HasSuffix(path, "/why") && !strings.HasSuffix(path, "/graph")
		if strings.HasPrefix(path, "/v1/jobs/") && ofOne { // what happens to others does not answer it
			f.apply(t, submitted(num))
			select {
			case <-got:
				t.Fatalf("%s: another job answered it", path)
			case <-time.After(5 * time.Millisecond):
			}
			f.apply(t, &command.Cancel{Job: command.JobID{Site: "site-1", Num: 1}, Task: int64(num)})
		} else {
			f.apply(t, submitted(num))
		}
		if now := <-got; now == index || now == "" {
			t.Errorf("%s: answered at %s after %s", path, now, index)
		}
	}
}

// TestBlockingReadsFromOutside: what cannot be waited for is told at once.
func TestBlockingReadsFromOutside(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	f.found(t)
	for query, want := range map[string]int{
		"index=x": 400, "index=-1": 400, "index=2&wait=1h": 400, "index=2&wait=soon": 400, "index=2&wait=-1s": 400, "index=2&home=x": 400,
		"index=2&index=3": 400, "index=0": 200, "wait=5m": 200, "index=1": 200, "index=2&home=0&wait=5m": 200,
		"index=18446744073709551615&wait=1ms": 200, // ahead of this broker
	} {
		if w := ask(s, "GET", "/v1/queue?"+query, "", ""); w.Code != want {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	begin := time.Now()
	for _, path := range []string{"/v1/jobs/site-1.77?index=2", "/v1/jobs/nonsense?index=2", "/v1/jobs/site-1.77/tasks?index=2"} {
		if w := ask(s, "GET", path, "", ""); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if took := time.Since(begin); took > reads.MaxWait/2 {
		t.Errorf("an unknown job was waited for: %v", took)
	}
	if w := ask(s, "GET", "/v1/policy?index=2", "", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "index") {
		t.Errorf("policy does not block: %d %s", w.Code, w.Body)
	}
}
