package testbed

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeSite answers every request with the handler.
func fakeSite(t *testing.T, h http.HandlerFunc) *Site {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Site{Name: "fake", URL: u, Dir: t.TempDir()}
}

func TestAwaitTellsTheLastReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*pollEvery-1)
		defer cancel()
		looks := 0
		err := Await(ctx, "a miracle", func() error { looks++; return errors.New("not yet") })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a miracle") ||
			!strings.Contains(err.Error(), "not yet") || looks != 3 {
			t.Fatalf("after %d looks: %v", looks, err)
		}
	})
}

func TestAwaitEndsAtAFinalError(t *testing.T) {
	looks, bad := 0, errors.New("broken")
	err := Await(t.Context(), "a miracle", func() error { looks++; return Final(bad) })
	if !errors.Is(err, bad) || looks != 1 {
		t.Fatalf("after %d looks: %v", looks, err)
	}
}

func TestProblemsAreErrors(t *testing.T) {
	s := fakeSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte(`{"type":"x","title":"unknown job","status":404}`))
	})
	_, err := s.Job(t.Context(), "site-1.1")
	var he *HTTPError
	if !errors.As(err, &he) || he.Status != 404 || he.Problem.Title != "unknown job" {
		t.Fatalf("got %v", err)
	}
}

func TestTasksFollowsThePages(t *testing.T) {
	s := fakeSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			w.Write([]byte(`{"items":[{"index":0,"token":7}],"next":"1"}`))
			return
		}
		w.Write([]byte(`{"items":[{"index":1,"token":"8"}],"next":""}`))
	})
	tasks, err := s.Tasks(t.Context(), "site-1.1")
	if err != nil || len(tasks) != 2 || tasks[0].Token != "7" || tasks[1].Token != "8" {
		t.Fatalf("got %+v, %v", tasks, err)
	}
}

func TestLedgerCheck(t *testing.T) {
	even := Ledger{Sites: []Account{{Priority: "340282366920938463463374607431768211455"}, {Priority: "-340282366920938463463374607431768211455"}}}
	if err := even.Check(); err != nil {
		t.Error(err)
	}
	odd := Ledger{Sites: []Account{{Priority: "5"}, {Priority: "-4"}}}
	if odd.Check() == nil {
		t.Error("a sum of 1 passed")
	}
}

func TestEqualStateNeedsEqualHashes(t *testing.T) {
	at := func(index, hash string) *Site {
		return fakeSite(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"state_hash":{"index":` + index + `,"hash":"` + hash + `"}}`))
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := AwaitEqualState(ctx, at("3", "aa"), at("3", "aa")); err != nil {
		t.Error(err)
	}
	if err := AwaitEqualState(ctx, at("3", "aa"), at("3", "bb")); err == nil || ctx.Err() != nil {
		t.Errorf("different hashes: %v", err)
	}
	short, end := context.WithCancel(ctx)
	defer end()
	var looks atomic.Int64
	behind := fakeSite(t, func(w http.ResponseWriter, _ *http.Request) {
		if looks.Add(1) == 2 {
			end() // the look that it cuts short says nothing new
		}
		w.Write([]byte(`{"state_hash":{"index":4,"hash":"aa"}}`))
	})
	if err := AwaitEqualState(short, at("3", "aa"), behind); !errors.Is(err, errBehind) {
		t.Errorf("different entries: %v", err)
	}
}

func TestKillWaitsForTheEnd(t *testing.T) {
	s := &Site{Name: "fake", Dir: t.TempDir()}
	cmd := exec.Command("sleep", "300")
	cmd.Args[0] = "sleep-for-" + s.Dir // stands for the broker's --config DIR/…
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := watch(cmd, os.DevNull)
	pidFile := filepath.Join(s.Dir, "broker.pid")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The kernel shows the command line a moment after exec.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Await(ctx, "sight of the process", func() error {
		if !s.Alive() {
			return errors.New("not seen")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil || s.Alive() {
		t.Fatalf("killed: %v, alive %v", err, s.Alive())
	}
	<-c.done
	if c.failed() == nil {
		t.Error("the kill is not seen as a failure")
	}
}

func TestPeerAddress(t *testing.T) {
	s := &Site{Name: "fake", Dir: t.TempDir()}
	text := "site: fake\nhttp: 127.0.0.1:1\npeer: \"127.0.0.1:2\"\n"
	if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.PeerAddress(); err != nil || got != "127.0.0.1:2" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestParseResident(t *testing.T) {
	if got, err := parseResident("Name:\tx\nVmHWM:\t 9 kB\nVmRSS:\t   2048 kB\n"); err != nil || got != 2 {
		t.Errorf("got %v MiB, %v", got, err)
	}
	for _, text := range []string{"", "VmRSS:\n", "VmRSS: x kB\n"} {
		if _, err := parseResident(text); err == nil {
			t.Errorf("%q was taken for a status", text)
		}
	}
}
