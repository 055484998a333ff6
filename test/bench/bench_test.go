package main

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

func TestQuantileIsNearestRank(t *testing.T) {
	var s sample
	for i := 100; i >= 1; i-- {
		s = append(s, time.Duration(i)*time.Millisecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := s.quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if one := (sample{time.Second}); one.quantile(0.5) != 1000 || one.quantile(0.99) != 1000 {
		t.Error("a single value is every quantile")
	}
	if !math.IsNaN(sample(nil).quantile(0.5)) {
		t.Error("no value has no quantile")
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		f    figure
		want string
	}{
		{figure{measured: 7, limit: 10, aim: aim{minRatio: .7}}, "met"},
		{figure{measured: 6.9, limit: 10, aim: aim{minRatio: .7}}, "MISSED"},
		{figure{measured: 20, limit: 10, aim: aim{maxRatio: 2}}, "met"},
		{figure{measured: 21, limit: 10, aim: aim{maxRatio: 2}}, "MISSED"},
		{figure{measured: 50_000, aim: aim{atLeast: 50_000}}, "met"},
		{figure{measured: 49_999, aim: aim{atLeast: 50_000}}, "MISSED"},
		{figure{measured: 5, aim: aim{maxRatio: 2}}, "MISSED"}, // nothing to stand beside
		{figure{measured: 0.9, aim: aim{below: 1}}, "met"},
		{figure{measured: 1, aim: aim{below: 1}}, "MISSED"},
		{figure{measured: 0, aim: aim{none: true}}, "met"},
		{figure{measured: 1, aim: aim{none: true}}, "MISSED"},
		{figure{measured: math.NaN(), aim: aim{none: true}}, "MISSED"},
		{figure{measured: math.NaN(), aim: aim{atLeast: 1}}, "MISSED"},
		{figure{measured: 1}, ""},
	} {
		if got := c.f.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
}

func TestTableShowsFigureLimitRatioAndAim(t *testing.T) {
	tab := newTable("2 cores")
	tab.add(figure{name: "singles", measured: 700, limit: 1000, unit: "jobs/s", aim: aim{minRatio: .7}})
	tab.figures[0].peers = "Nomad 450"
	tab.addSheet(sheet{title: "growth", head: []string{"operation", "batch"}, rows: [][]string{{"submit", "64"}}})
	var b strings.Builder
	tab.write(&b)
	for _, want := range []string{"2 cores\n", "singles  700 jobs/s  1000", "0.70", "≥ 0.70 of limit", "met", "Nomad 450", "\ngrowth\noperation  batch\nsubmit     64\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

func TestChoose(t *testing.T) {
	if got, err := choose("fsm,latency"); err != nil || len(got) != 2 || got[0].name != "fsm" {
		t.Errorf("chose %v, %v", got, err)
	}
	if got, err := choose(""); err != nil || len(got) == 0 || budget(got) != total {
		t.Errorf("by default %v, %v", got, err)
	}
	if got, err := choose("losses"); err != nil || len(got) < 2 || budget(got) <= total {
		t.Errorf("the group is %v, %v", got, err)
	}
	if _, err := choose("nothing"); err == nil {
		t.Error("an unknown section was accepted")
	}
}

func TestCountInWindowAddsAllClients(t *testing.T) {
	var calls atomic.Int64
	began := time.Now()
	rate, err := countInWindow(t.Context(), 4, 30*time.Millisecond, func(int) (int, error) {
		calls.Add(1)
		return 10, nil
	})
	most := float64(10*calls.Load()) / 0.03
	least := float64(10*calls.Load()) / time.Since(began).Seconds()
	if err != nil || rate > most || rate < least {
		t.Fatalf("rate %v of %d calls, %v", rate, calls.Load(), err)
	}
}

func TestCountToMakesSoManyCalls(t *testing.T) {
	var calls atomic.Int64
	if _, err := countTo(t.Context(), 4, 10, func(int) (int, error) { return int(calls.Add(1)), nil }); err != nil ||
		calls.Load() != 10 {
		t.Fatalf("%d calls, %v", calls.Load(), err)
	}
}

func TestCountInWindowReportsErrors(t *testing.T) {
	bad := errors.New("refused")
	_, err := countInWindow(t.Context(), 2, time.Minute, func(int) (int, error) { return 0, bad })
	if !errors.Is(err, bad) {
		t.Fatalf("got %v", err)
	}
}

// stamped returns an environment with a stamp program.
func stamped(t *testing.T) environment {
	t.Helper()
	env := environment{dir: t.TempDir(), notes: io.Discard}
	var err error
	if env.stamp, err = prepareStamp(t.Context(), env.dir); err != nil {
		t.Fatal(err)
	}
	return env
}

func TestStartsTimesAProcess(t *testing.T) {
	env := stamped(t)
	st, err := listenStarts(env)
	if err != nil {
		t.Fatal(err)
	}
	defer st.close()
	before := time.Now()
	cmd := exec.Command(env.stamp, st.path)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	got, err := st.next(t.Context())
	if err != nil || got.at.Before(before) || got.at.After(time.Now()) || got.attempt != 0 {
		t.Fatalf("started %+v, %v; asked at %v", got, err, before)
	}
	task := exec.Command(env.stamp, st.path)
	task.Env = []string{"CLOUDSHARE_JOB=a.7", "CLOUDSHARE_ATTEMPT=2", "CLOUDSHARE_SITE=b"}
	if err := task.Run(); err != nil {
		t.Fatal(err)
	}
	if got, err = st.next(t.Context()); err != nil || got.job != "a.7" || got.attempt != 2 || got.site != "b" {
		t.Fatalf("task started %+v, %v", got, err)
	}
}

func TestBareLimitsRun(t *testing.T) {
	env := stamped(t)
	bare, err := openBareSequence(env)
	if err != nil {
		t.Fatal(err)
	}
	for _, ordered := range []bool{false, true} {
		if took, err := bare.run(t.Context(), ordered); err != nil || took <= 0 {
			t.Errorf("bare sequence, ordered %v: %v, %v", ordered, took, err)
		}
	}
	if err := bare.close(); err != nil {
		t.Error(err)
	}
	if rate, err := forkLoop(t.Context(), 10, 3, nil); err != nil || rate <= 0 {
		t.Fatalf("fork loop: %v, %v", rate, err)
	}
}

// TestBareStates: what the bare state machines are given is taken, at all of them.
func TestBareStates(t *testing.T) {
	b, err := newBareStates(2)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for i := range b.sites {
			if err := b.apply(b.sites[i].entry([][]byte{[]byte("one"), []byte("two")})); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range b.members {
		if n := b.members[i].s.Index(); n != 7 {
			t.Errorf("member %d has applied %d entries", i, n)
		}
	}
	b.sites[0].jobs = 0
	if err := b.apply(b.sites[0].entry([][]byte{[]byte("again")})); err == nil {
		t.Error("a refused job goes unseen")
	}
}

func TestLaneCountsCommits(t *testing.T) {
	answers := []string{`{"id":"a.1","durability":"federation"}`, `{"id":"a.2","durability":"site"}`}
	var asked int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "{}" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Write([]byte(answers[asked]))
		asked++
	}))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := dialLane(t.Context(), &testbed.Site{Name: "fake", URL: u}, "application/json", []byte("{}"), func(http.Header) {})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLanes([]*lane{l})
	if n, err := l.postJobs(1); n != 1 || err != nil {
		t.Errorf("a commit counts %d, %v", n, err)
	}
	if n, err := l.postJobs(1); n != 0 || err == nil {
		t.Errorf("a job that one site holds counts %d, %v", n, err)
	}
}
