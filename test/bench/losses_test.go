package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

func fakeSite(t *testing.T, h http.HandlerFunc) *testbed.Site {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &testbed.Site{Name: "fake", URL: u}
}

// TestFirstCommitIsOneOfTheNextLead: what was sent while the killed leader may
// still have worked proves nothing, nor does what one site acknowledged alone.
func TestFirstCommitIsOneOfTheNextLead(t *testing.T) {
	killed := time.Now()
	gone := killed.Add(10 * time.Millisecond)
	at := func(ms int) time.Time { return killed.Add(time.Duration(ms) * time.Millisecond) }
	s := &stream{answers: make(chan ask, 4)}
	s.answers <- ask{sent: at(5), answered: at(20), durability: "federation"}
	s.answers <- ask{sent: at(15), answered: at(300), err: errors.New("no leader")}
	s.answers <- ask{sent: at(15), answered: at(400), durability: "site"}
	s.answers <- ask{sent: at(15), answered: at(500), durability: "federation"}
	var seen outage
	gap, err := s.firstCommit(t.Context(), killed, gone, &seen)
	if err != nil || gap != 500*time.Millisecond {
		t.Errorf("gap %v, %v", gap, err)
	}
	if seen.asked != 4 || seen.failed != 1 || seen.local != 1 || seen.first == nil {
		t.Errorf("counted %+v", seen)
	}
}

func TestStreamDoesNotWaitForAnswers(t *testing.T) {
	arrived, answer := make(chan struct{}, openAsks), make(chan struct{})
	s := openStream(t.Context(), []*testbed.Site{fakeSite(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.Write([]byte(`{"id":"a.1","durability":"federation"}`))
	})}, askEvery)
	for range 3 {
		<-arrived
	}
	close(answer)
	n := 0
	for a := range s.stop() {
		if n++; a.err != nil || a.durability != "federation" || a.answered.Before(a.sent) {
			t.Errorf("answer %d is %+v", n, a)
		}
	}
	if n < 3 {
		t.Errorf("%d of at least 3 requests were answered", n)
	}
}

// TestLookCountsGivenUpAttempts follows a task that runs on, runs again (once
// after a declined attempt, which is no second requeue), and is lost for good.
func TestLookCountsGivenUpAttempts(t *testing.T) {
	tasks, jobs := make(chan string, 2), make(chan string, 2)
	s := fakeSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/tasks"):
			w.Write([]byte(`{"items":[` + <-tasks + `]}`))
		case r.Method == http.MethodPost:
			w.Write([]byte(`{"id":"a.2"}`))
		default:
			w.Write([]byte(`{"id":"a.1","state":"` + <-jobs + `"}`))
		}
	})
	l := &lent{owner: s, at: s, job: "a.1", attempt: 1}
	look := func(requeues int) {
		t.Helper()
		if err := l.look(t.Context()); err != nil || l.requeues != requeues || l.stranded != 0 {
			t.Errorf("%d requeues, %d stranded, %v; want %d", l.requeues, l.stranded, err, requeues)
		}
	}
	tasks <- `{"state":"running","attempt":1}`
	look(0)
	tasks <- `{"state":"queued","attempt":2}`
	jobs <- "queued"
	jobs <- "running"
	tasks <- `{"state":"running","attempt":3}`
	look(1)
	tasks <- `{"state":"running","attempt":3}`
	look(1)
	tasks <- `{"state":"lost","attempt":3}`
	jobs <- "lost"
	jobs <- "running" // the one that takes its place
	look(2)
	if l.job != "a.2" || l.attempt != 1 {
		t.Errorf("the lost task was not replaced: %+v", l)
	}
	tasks <- `{"state":"failed","attempt":1}`
	jobs <- "failed"
	if err := l.look(t.Context()); err == nil {
		t.Error("a task that failed was taken for one at work")
	}
}

func TestParseStartRefusesOtherText(t *testing.T) {
	for _, text := range []string{"", "1", "x a 1 b", "1 a x b", "1 a 1 b c"} {
		if got, err := parseStart(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}
