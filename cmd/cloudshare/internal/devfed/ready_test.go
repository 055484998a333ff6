package devfed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestWaitingSaysWhy: every few seconds, and only what is new.
func TestWaitingSaysWhy(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := waitingFor{next: begin.Add(tellEvery)}
	var said []string
	for tick := range 400 {
		now := begin.Add(time.Duration(tick) * readyPoll)
		why := "it does not answer yet"
		if tick >= 150 {
			why = "no leader is known"
		}
		if w.news(now, why) {
			said = append(said, fmt.Sprintf("%s %s", now.Sub(begin), why))
		}
	}
	if want := "[3s it does not answer yet 9s no leader is known]"; fmt.Sprint(said) != want {
		t.Errorf("said %v, want %s", said, want)
	}
}

// unready is a site whose broker lives and has no quorum.
func unready(t *testing.T) *devSite {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-ready","title":"The broker is not-ready","status":503,"detail":"no leader is known"}`)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	for _, name := range []string{"site-1", "site-2"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "config.yaml"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &devSite{
		Name: "site-1", Dir: filepath.Join(dir, "site-1"), HTTP: strings.TrimPrefix(srv.URL, "http://"),
		child: &child{done: make(chan struct{})},
	}
}

// TestStartedWithoutQuorum: a site that runs was started, also if it cannot be
// ready before others run.
func TestStartedWithoutQuorum(t *testing.T) {
	s := unready(t)
	var errs bytes.Buffer
	a := &cli.App{Streams: cli.Streams{Err: &errs}}
	if err := awaitStarted(t.Context(), a, s, 2*readyPoll); err != nil || !strings.Contains(errs.String(), "no leader is known") ||
		!strings.Contains(errs.String(), "goes on trying") {
		t.Errorf("%v, said %s", err, &errs)
	}
	if down := s.down(); fmt.Sprint(down) != "[site-2]" {
		t.Errorf("down are %v", down)
	}
}

// TestNotReadyInTime tells a broker that lives from one that has ended.
func TestNotReadyInTime(t *testing.T) {
	s := unready(t)
	err := s.await(t.Context(), 2*readyPoll, func(string) {})
	if !errors.Is(err, errNotReady) || cli.CodeOf(err) != cli.ExitError || !strings.Contains(err.Error(), "no leader is known") {
		t.Errorf("exit %d: %v", cli.CodeOf(err), err)
	}
	close(s.child.done)
	if err := s.await(t.Context(), time.Minute, func(string) {}); err == nil || errors.Is(err, errNotReady) {
		t.Errorf("one that has ended: %v", err)
	}
}

// TestBrokerEnvironment: what counts for all sites reaches their brokers.
func TestBrokerEnvironment(t *testing.T) {
	got := brokerEnv([]string{
		"PATH=/bin", "CLOUDSHARE_MIN_FREE=0", "CLOUDSHARE_TASK_LOGS_KEEP=1h", "CLOUDSHARE_HTTP=127.0.0.1:1",
		"CLOUDSHARE_SITE=x", "CLOUDSHARE_ADDR=http://x", "CLOUDSHARE_TOKEN=1", "CLOUDSHARE_PPROF=127.0.0.1:6060", "CLOUDSHARE_MYSTERY=1",
	})
	if want := "[PATH=/bin CLOUDSHARE_MIN_FREE=0 CLOUDSHARE_TASK_LOGS_KEEP=1h]"; fmt.Sprint(got) != want {
		t.Errorf("passed %v, want %s", got, want)
	}
}

// TestNobodyJoins: a federation of one site, or one that is started again, has
// no sites that join.
func TestNobodyJoins(t *testing.T) {
	d := &dev{App: &cli.App{}}
	if err := d.launchAll(t.Context(), nil, false); err != nil {
		t.Error(err)
	}
}
