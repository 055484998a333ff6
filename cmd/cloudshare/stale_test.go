package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// staleNote says since when, and what works all the same.
var staleNote = regexp.MustCompile(`^stale: as of 42 s ago: this broker has no contact with the leader, since \d\d:\d\d:\d\d; its own users' jobs are accepted and run at home, all else waits\n$`)

// TestStaleNotes: a stale answer is noted on stderr, its data is as always; the
// flag is passed on, and refused if it is no age.
func TestStaleNotes(t *testing.T) {
	age, asked := "42.123", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("max_staleness")
		w.Header().Set(wire.HeaderAge, age)
		w.Header().Set(wire.HeaderStale, "true")
		_, _ = io.WriteString(w, `{"items":[],"next":"","stale":true,"age_ms":42123}`)
	}))
	defer srv.Close()
	ask := func(args ...string) (int, string, string) {
		var out, notes strings.Builder
		code := runWith(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &notes},
			append(args, "--addr", srv.URL)...)
		return code, out.String(), notes.String()
	}
	if code, out, notes := ask("sites", "-o", "json"); code != 0 || !strings.Contains(out, `"age_ms": 42123`) || !staleNote.MatchString(notes) ||
		asked != "" {
		t.Errorf("%d %s %s %q", code, out, notes, asked)
	}
	age = "unknown"
	if code, _, notes := ask("jobs", "--max-staleness", "0"); code != 0 || !strings.Contains(notes, "no contact with the leader since it started") || asked != "0s" {
		t.Errorf("%d %s %q", code, notes, asked)
	}
	for _, args := range [][]string{{"policy"}, {"policy", "get"}} { // the first of them once kept silent
		if code, _, notes := ask(append(args, "--max-staleness", "5s")...); code != 0 || !strings.Contains(notes, "stale: ") || asked != "5s" {
			t.Errorf("%v: %d %s %q", args, code, notes, asked)
		}
	}
	for _, bad := range []string{"-1s", "5", "soon"} {
		if code, _, notes := ask("jobs", "--max-staleness", bad); code != 2 || !strings.Contains(notes, "must be a duration") {
			t.Errorf("%s: %d %s", bad, code, notes)
		}
	}
}

// TestStaleWatchKeepsDataApart: who watches JSON reads nothing else on stdout.
func TestStaleWatchKeepsDataApart(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		w.Header().Set(wire.HeaderIndex, strconv.FormatInt(n, 10))
		w.Header().Set(wire.HeaderAge, "42.123")
		w.Header().Set(wire.HeaderStale, "true")
		state := "running"
		if n > 2 {
			state = "succeeded"
		}
		_, _ = fmt.Fprintf(w, `{"id":"site-1.1","state":%q,"stale":true,"age_ms":42123}`, state)
	}))
	defer srv.Close()
	code, out, notes := runCLI(t, "", "job", "site-1.1", "--watch", "-o", "json", "--addr", srv.URL)
	if code != 0 || strings.Contains(out, "no contact") || !strings.Contains(out, `"stale": true`) {
		t.Errorf("%d: %s", code, out)
	}
	if !staleNote.MatchString(notes) {
		t.Errorf("notes %q", notes)
	}
	asked.Store(0)
	if code, out, _ := runCLI(t, "", "job", "site-1.1", "--watch", "--addr", srv.URL); code != 0 || !strings.Contains(out, "stale: as of 42 s ago") {
		t.Errorf("%d: %s", code, out)
	}
}
