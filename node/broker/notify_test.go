package broker

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/notices"
	"github.com/cloudshare/cloudshare/node/outward"
)

// listener is who is told of jobs' ends.
type listener struct {
	*httptest.Server
	told chan string // subject, state
	fail atomic.Bool // it takes nothing
}

// listen has a site tell a listener, from its next start on.
func (s *testSite) listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{told: make(chan string, 100)}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.fail.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var e struct {
			Subject string
			Data    struct{ State string }
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		l.told <- e.Subject + " " + e.Data.State
	}))
	t.Cleanup(l.Close)
	roots := x509.NewCertPool()
	roots.AddCert(l.Certificate())
	host := l.Listener.Addr().String()
	s.told = notices.Config{
		Hosts: []string{host}, Secret: bytes.Repeat([]byte("s"), notices.MinSecret),
		Rules: &outward.Rules{
			Hosts: []string{host}, Private: true, Roots: roots, Refused: node.ErrNoticeRefused, HostsKey: "notify.to",
		},
	}
	s.again(t)
	return l
}

// again ends the site's broker and starts it again on its data.
func (s *testSite) again(t *testing.T) {
	t.Helper()
	s.stop(t)
	s.handler = s.handler.reopen()
	s.start(t)
}

func (l *listener) job(count int) string {
	return fmt.Sprintf(`{"command":["sleep"],"count":%d,"notify":[{"url":"%s/x"}]}`, count, l.URL)
}

func (l *listener) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-l.told:
		if got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nobody was told of %s", want)
	}
}

// receipt waits until it is noted that a notice was taken.
func (s *testSite) receipt(t *testing.T, id command.JobID) {
	t.Helper()
	for {
		job, err := s.Job(t.Context(), id)
		if err != nil || len(job.Notices) != 1 {
			t.Fatalf("%+v, %v", job, err)
		}
		if job.Notices[0].State == node.NoticeSent {
			return
		}
		runtime.Gosched()
	}
}

// TestWhyTellsOfUndeliveredNotices: once a job has ended, why says whom its end could not be told, until it was told.
// Before the end nothing is overdue.
func TestWhyTellsOfUndeliveredNotices(t *testing.T) {
	s := startSites(t, 1)[0]
	l := s.listen(t)
	l.fail.Store(true)
	id := s.accept(t, l.job(1)).ID
	run := <-s.handler.started
	if w, err := s.Why(t.Context(), id); err != nil || w.Notices != nil {
		t.Errorf("before its end: %+v, %v", w.Notices, err)
	}
	s.handler.end(run, executor.Result{Cause: executor.Exited})
	for {
		w, err := s.Why(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Notices) == 1 && w.Notices[0].Attempts > 0 {
			if n := w.Notices[0]; n.State != node.NoticeWaiting || n.URL != l.URL+"/x" || n.Outcome == "" {
				t.Errorf("%+v", n)
			}
			break
		}
		runtime.Gosched()
	}
	l.fail.Store(false)
	l.hears(t, id.String()+" succeeded")
	s.receipt(t, id)
	if w, err := s.Why(t.Context(), id); err != nil || w.Notices != nil {
		t.Errorf("after it was told: %+v, %v", w.Notices, err)
	}
}

// TestEndsAreTold: of a job that ran at home and one that ran elsewhere, by their owner alone, each once; and nothing
// of who is told leaves the site.
func TestEndsAreTold(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	l := a.listen(t)
	home, away := a.accept(t, l.job(1)), a.accept(t, l.job(1))
	first, second := <-a.handler.started, <-b.handler.started
	b.cfg.Replica.View(func(s *fsm.State) {
		v, _ := s.Job(away.ID)
		public, text, err := a.secrets.sealer.Open(v.Spec.Payload)
		if err != nil || len(text) == 0 || bytes.Contains(append(public, text...), []byte(l.URL)) {
			t.Errorf("the replicated job says %s %s, %v", public, text, err)
		}
	})
	a.handler.end(first, executor.Result{Started: time.Now(), Run: time.Second})
	l.hears(t, home.ID.String()+" succeeded")
	b.handler.end(second, executor.Result{Started: time.Now(), Run: time.Second, ExitCode: 3})
	l.hears(t, away.ID.String()+" failed")
	a.receipt(t, away.ID)
	a.again(t)
	a.receipt(t, away.ID)
	if len(l.told) != 0 {
		t.Errorf("told again: %s", <-l.told)
	}
}

// TestEndsWithoutTheOwner: what ended while the owner's broker was away is told when it is back.
func TestEndsWithoutTheOwner(t *testing.T) {
	sites := startSites(t, 1, 1, 1) // two are a quorum
	a, b := sites[0], sites[1]
	l := a.listen(t)
	away := a.accept(t, strings.Replace(l.job(1), "{", `{"sites":{"only":["site-2"]},`, 1))
	id := <-b.handler.started
	a.stop(t)
	b.handler.end(id, executor.Result{Started: time.Now(), Run: time.Second})
	b.await(t, func(s *fsm.State) bool {
		v, ok := s.Job(away.ID)
		return ok && v.State == fsm.TaskSucceeded
	})
	a.handler = a.handler.reopen()
	a.start(t)
	l.hears(t, away.ID.String()+" succeeded")
}

// TestCancelledWhileItWaits: its end is told, too. A new job of its tasks is told to the same; other hosts are refused
// at submit and before it, but what repeats an earlier request is answered.
func TestCancelledWhileItWaits(t *testing.T) {
	a := startSites(t, 1)[0]
	l := a.listen(t)
	a.accept(t, sleepJob)
	waits := a.accept(t, l.job(2))
	if err := a.Cancel(t.Context(), waits.ID); err != nil {
		t.Fatal(err)
	}
	l.hears(t, waits.ID.String()+" cancelled")
	spec, err := a.Rerun(t.Context(), waits.ID, node.TaskQuery{States: 1 << fsm.TaskCancelled})
	if err != nil || len(spec.Notify) != 1 || spec.Notify[0].URL != l.URL+"/x" {
		t.Errorf("%+v, %v", spec.Notify, err)
	}
	spec.Notify[0].URL = "https://elsewhere.example.org/"
	req := node.Request{Spec: spec}
	if got := a.Submit(t.Context(), []node.Request{req})[0]; !errors.Is(got.Err, node.ErrNoticeRefused) {
		t.Errorf("%+v", got)
	}
	if _, err := a.DryRun(t.Context(), req); !errors.Is(err, node.ErrNoticeRefused) {
		t.Error(err)
	}
	b := startSites(t, 1)[0] // nobody is told there
	spec.Notify = []jobspec.Hook{{URL: l.URL, On: []string{jobspec.HookEnded}}}
	if got := b.Submit(t.Context(), []node.Request{{Spec: spec}})[0]; !errors.Is(got.Err, node.ErrNoticeRefused) {
		t.Errorf("%+v", got)
	}
}

// TestHeldJobsEndsAreTold: a job that waits for others is told of when it is cancelled, by its user or in vain, though
// the broker was started again meanwhile, and when it has run.
func TestHeldJobsEndsAreTold(t *testing.T) {
	a := startSites(t, 1)[0]
	l := a.listen(t)
	first := a.accept(t, sleepJob)
	<-a.handler.started
	after := func(when string) node.Answer {
		return a.accept(t, strings.Replace(l.job(1), "{", `{"after":[{"job":"`+first.ID.String()+`","when":"`+when+`"}],`, 1))
	}
	byUser, vain, runs := after("ok"), after("ok"), after("notok")
	if err := a.Cancel(t.Context(), byUser.ID); err != nil {
		t.Fatal(err)
	}
	l.hears(t, byUser.ID.String()+" cancelled")
	a.receipt(t, byUser.ID)
	a.again(t)
	if err := a.Cancel(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	a.endStopped(t)
	l.hears(t, vain.ID.String()+" cancelled")
	a.handler.end(<-a.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	l.hears(t, runs.ID.String()+" succeeded")
	for _, id := range []command.JobID{byUser.ID, vain.ID, runs.ID} {
		a.receipt(t, id)
	}
	if len(l.told) != 0 {
		t.Errorf("told again: %s", <-l.told)
	}
}

// endStopped ends a task that is told to stop.
func (s *testSite) endStopped(t *testing.T) {
	t.Helper()
	select {
	case id := <-s.handler.stopped:
		s.handler.end(id, executor.Result{Cause: executor.Stopped})
	case <-time.After(time.Minute):
		t.Fatal("nothing was stopped")
	}
}
