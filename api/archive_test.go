package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/archive"
)

// fakeArchive has one row, and remembers what it was asked.
type fakeArchive struct {
	query  archive.Query
	err    error
	half   bool // an export breaks off in the middle
	during func()
}

var _ Archive = (*fakeArchive)(nil)

func (f *fakeArchive) Report(_ context.Context, q archive.Query, by string) (*archive.Report, error) {
	f.query = q
	if f.during != nil {
		f.during()
	}
	row := archive.Row{
		Key: "site-1", Own: 3_600_000_000, Lent: 1_800_000_000, Attempts: 3, Tasks: 2, Succeeded: 2, Waits: 1,
		WaitMean: time.Second, WaitP50: time.Second, WaitP95: time.Second,
	}
	row.Measured = archive.Used{
		TimedCoreMs: 3_600_000_000, UserMs: 2_700_000, SystemMs: 180_000, PeakBytes: 512 << 20,
		InBytes: 42, OutBytes: 1 << 40,
	}
	return &archive.Report{
		Site: "site-1", Scope: archive.Own, By: by, First: time.UnixMilli(1_000_000), Rows: []archive.Row{row},
		Total: archive.Row{Key: "total"},
		Gaps:  []archive.Gap{{From: 3, To: 9, Until: time.UnixMilli(2_000_000), Reason: "away"}},
	}, f.err
}

func (f *fakeArchive) Export(_ context.Context, q archive.Query, format string, w io.Writer) error {
	f.query = q
	if f.err != nil && !f.half {
		return f.err
	}
	fmt.Fprintf(w, "%s\n", format)
	return f.err
}

func (f *fakeArchive) Usage(_ context.Context, q archive.Query) (*archive.Usage, error) {
	f.query = q
	if q.Job.Num == 2 {
		return &archive.Usage{}, f.err
	}
	return &archive.Usage{
		Name: "render", Attempts: 3, Tasks: 2, First: time.UnixMilli(1_000_000), Last: time.UnixMilli(2_000_000),
		CoreMs: 7_200_000_000, MemMiB: 1024, Used: archive.Used{
			TimedCoreMs: 3_600_000_000, UserMs: 2_700_000, SystemMs: 180_000, PeakBytes: 512 << 20,
			InBytes: 42, OutBytes: 1 << 40,
		},
		Sources: map[command.MeasureSource]uint64{command.MeasuredCgroup: 2, command.MeasuredUnknown: 1},
		Gaps:    []archive.Gap{{From: 3, To: 9, Until: time.UnixMilli(2_000_000), Reason: "away"}},
	}, f.err
}

func TestArchiveAnswers(t *testing.T) {
	f := &fakeArchive{}
	s := New(Config{Archive: f}, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
	var out strings.Builder
	show := func(target string) {
		w := ask(s, "GET", target, "", "")
		fmt.Fprintf(&out, "GET %s\n→ %d %s %s\n%s\n", target, w.Code, w.Header().Get("Content-Type"), w.Header().Get("Retry-After"), w.Body)
	}
	for _, target := range []string{
		"/v1/report", "/v1/report?by=label%3Ateam&since=7d&until=2026-01-31&site=site-2&label=a%3Db",
		"/v1/archive", "/v1/archive?format=csv&since=2026-01-31T12:00:00Z", "/v1/archive?format=swf", "/v1/archive?format=xml",
		"/v1/report?since=yesterday", "/v1/report?until=-3h", "/v1/report?since=99999999999999999999d", "/v1/report?site=Bad+One", "/v1/report?label=x",
		"/v1/report?color=red", "/v1/report?by=site&by=day", "/v1/jobs/site-1.1/usage", "/v1/jobs/site-1.2/usage", "/v1/jobs/1/usage",
	} {
		show(target)
	}
	for _, err := range []error{archive.ErrOff, archive.ErrBadGroup, archive.ErrTooMany, errDisk} {
		f.err = fmt.Errorf("asked: %w", err)
		show("/v1/report?by=x")
	}
	golden(t, "archive.txt", out.String())
	if w := ask(newServer(newFake("site-1")), "GET", "/v1/archive", "", ""); w.Code != http.StatusNotFound {
		t.Errorf("without an archive: %d", w.Code)
	}
}

func TestArchiveQuery(t *testing.T) {
	f := &fakeArchive{}
	s := New(Config{Archive: f}, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
	ask(s, "GET", "/v1/report?since=7d&until=2026-01-31&site=site-2&label=a%3Db%3Dc", "", "")
	if ago := time.Since(f.query.Since); ago < 7*24*time.Hour || ago > 7*24*time.Hour+time.Minute {
		t.Errorf("since %s ago", ago)
	}
	if q := f.query; !q.Until.Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) || q.Site != "site-2" || q.Labels["a"] != "b=c" {
		t.Errorf("%+v", q)
	}
}

// TestArchiveIsReadByFew: more are told to come back.
func TestArchiveIsReadByFew(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	f := &fakeArchive{during: func() { begun <- struct{}{}; <-end }}
	s := New(Config{Archive: f}, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
	codes := make(chan int)
	for range maxArchiveReads {
		go func() { codes <- ask(s, "GET", "/v1/report", "", "").Code }()
		<-begun
	}
	if w := ask(s, "GET", "/v1/archive", "", ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
	close(end)
	for range maxArchiveReads {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
}

// TestBrokenExport: a client does not take a part for the whole.
func TestBrokenExport(t *testing.T) {
	f := &fakeArchive{err: errDisk, half: true}
	s := New(Config{Archive: f}, newFake("site-1"), prometheus.NewRegistry(), zerolog.Nop())
	srv := httptest.NewServer(s)
	defer srv.Close()
	res, err := http.Get(srv.URL + "/v1/archive")
	if err == nil {
		defer res.Body.Close()
		_, err = io.ReadAll(res.Body)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("a part was taken for the whole: %v", err)
	}
}
