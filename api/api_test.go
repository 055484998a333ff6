package api

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

var golden = goldenfile.Match

const (
	js = wire.TypeJSON
	nd = wire.TypeNDJSON
)

// request is one of TestAnswers.
type request struct {
	method, target, kind, body string
	headers                    []string
}

// TestAnswers runs requests in order against one broker and compares status,
// the headers that matter and the body with testdata/answers.txt.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	requests := []request{
		{"POST", "/v1/jobs", js, `{"command":["sleep","1"],"name":"first","labels":{"a":"b"}}`, nil},
		{"POST", "/v1/jobs", "", `{"command":["true"],"count":3}`, nil},
		{"POST", "/v1/jobs", js + "; charset=utf-8", `{"command":["k"]}`, []string{"Idempotency-Key", "k1"}},
		{"POST", "/v1/jobs", js, `{"command":["k"]}`, []string{"Idempotency-Key", "k1"}},
		{"POST", "/v1/jobs", js, "{ \"count\": 1,\n \"command\": [ \"\\u006b\" ] }", []string{"Idempotency-Key", "k1"}},
		{"POST", "/v1/jobs", js, `{"command":["other"]}`, []string{"Idempotency-Key", "k1"}},
		{"POST", "/v1/jobs", js, `{"command":["k"]}`, []string{"Content-Encoding", "br"}},
		{"POST", "/v1/jobs", js, `{"command":["k"]}`, []string{"Content-Encoding", "gzip, gzip"}},
		{"POST", "/v1/jobs", js, `{"command":["k"]}`, []string{"Content-Encoding", "gzip"}},
		{"POST", "/v1/jobs", js, ``, []string{"Content-Encoding", "gzip"}},
		{"POST", "/v1/jobs", js, packed(`{"command":["k"]}`), []string{"Content-Encoding", "GZIP", "Idempotency-Key", "k1"}},
		{"POST", "/v1/jobs", js, packed(`{"command":["k"]}`)[:30], []string{"Content-Encoding", "gzip"}},
		{"POST", "/v1/jobs", js, packed(`{"name":"` + long + `"}`), []string{"Content-Encoding", "gzip"}},
		{"POST", "/v1/jobs", nd, packed("\n{\"command\":[\"a\"]}\n \t\r\nnonsense\n\n"), []string{"Content-Encoding", "gzip"}},
		{"POST", "/v1/jobs", js, `{"command":["k"]}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}},
		{"POST", "/v1/jobs", js, `{"command":["k"]}`, []string{"Idempotency-Key", "a\tb"}},
		{"POST", "/v1/jobs?strict=true", js, `{"command":["k"],"resources":{"cpu":99}}`, nil},
		{"POST", "/v1/jobs?strict=maybe", js, `{"command":["k"]}`, nil},
		{"POST", "/v1/jobs?color=red", js, `{"command":["k"]}`, nil},
		{"POST", "/v1/jobs", js, ``, nil},
		{"POST", "/v1/jobs", js, `{"command":`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"count":0}`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"cout":2}`, nil},
		{"POST", "/v1/jobs", js, `{"name":"` + long + `"}`, nil},
		{"POST", "/v1/jobs", "text/yaml", `command: [a]`, nil},
		{"POST", "/v1/jobs", js + "; charset=latin1", `{}`, nil},
		{"POST", "/v1/jobs", nd, "{\"command\":[\"a\"]}\r\n\nnonsense\n{\"command\":[\"b\"]}", nil},
		{"POST", "/v1/jobs", nd, "{\"command\":[\"a\"]}", []string{"Idempotency-Key", "lines"}},
		{"POST", "/v1/jobs", nd, "{\"command\":[\"a\"]}\n{\"command\":[\"b\"]}", []string{"Idempotency-Key", "lines"}},
		{"GET", "/v1/jobs/site-1.1", "", "", nil},
		{"GET", "/v1/jobs/site-1.99", "", "", nil},
		{"GET", "/v1/jobs/nonsense", "", "", nil},
		{"GET", "/v1/jobs/site-1.18446744073709551616", "", "", nil},
		{"GET", "/v1/jobs/%00%ff", "", "", nil},
		{"GET", "/v1/jobs?limit=1&label=a%3Db&label=c%3D&state=queued&site=site-1", "", "", nil},
		{"GET", "/v1/jobs?name=a&name=b", "", "", nil},
		{"GET", "/v1/jobs?limit=0", "", "", nil},
		{"GET", "/v1/jobs?limit=many", "", "", nil},
		{"GET", "/v1/jobs?limit=1&limit=2", "", "", nil},
		{"GET", "/v1/sites?wait=1s&wait=2s", "", "", nil},
		{"GET", "/v1/status?hash=true&hash=false", "", "", nil},
		{"GET", "/v1/jobs?state=asleep", "", "", nil},
		{"GET", "/v1/jobs?label=novalue", "", "", nil},
		{"GET", "/v1/jobs?site=Bad+Site", "", "", nil},
		{"GET", "/v1/jobs?colour=red", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?limit=2", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?limit=2&cursor=2", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?cursor=-1", "", "", nil},
		{"GET", "/v1/jobs/site-1.1/logs", "", "", nil},
		{"GET", "/v1/jobs/site-1.1/logs?task=2&attempt=3&stream=stderr", "", "", nil},
		{"GET", "/v1/jobs/site-1.1/logs?stream=stdin", "", "", nil},
		{"GET", "/v1/jobs/site-1.1/logs?task=-1", "", "", nil},
		{"GET", "/v1/jobs/site-1.1/logs?attempt=0", "", "", nil},
		{"GET", "/v1/jobs/site-1.1/logs?task=0&task=1", "", "", nil},
		{"DELETE", "/v1/jobs/site-1.1", "", "", nil},
		{"DELETE", "/v1/jobs/site-1.1", "", "", nil},
		{"DELETE", "/v1/jobs/site-9.1", "", "", nil},
		{"GET", "/v1/sites", "", "", nil},
		{"GET", "/v1/sites?x=1", "", "", nil},
		{"GET", "/v1/queue", "", "", nil},
		{"GET", "/v1/quota", "", "", nil},
		{"GET", "/v1/quota?all=true", "", "", nil},
		{"GET", "/v1/quota?all=some", "", "", nil},
		{"GET", "/v1/ledger", "", "", nil},
		{"GET", "/v1/plausibility", "", "", nil},
		{"GET", "/v1/status", "", "", nil},
		{"GET", "/v1/status?hash=false", "", "", nil},
		{"GET", "/v1/policy", "", "", nil},
		{"PUT", "/v1/policy", js, `{"policy":"FAIRSHARE","running":"completed"}`, nil},
		{"PUT", "/v1/policy", js, `{"running":"sometimes"}`, nil},
		{"PUT", "/v1/policy", js, `{"retain_jobs":-1}`, nil},
		{"PUT", "/v1/policy", js, `{"retain_jobs":1e99}`, nil},
		{"PUT", "/v1/policy", js, `{"polcy":"x"}`, nil},
		{"PUT", "/v1/policy", js, `null`, nil},
		{"PUT", "/v1/policy", js, `{"retain_jobs":5,"policy":null}`, nil},
		{"PUT", "/v1/policy", js, `{"policy":`, nil},
		{"PUT", "/v1/policy", js, " \n", nil},
		{"PUT", "/v1/policy", js, `{"prefer_own":"yes"}`, nil},
		{"PUT", "/v1/policy", js, `{} {}`, nil},
		{"PUT", "/v1/policy", "text/plain", `{}`, nil},
		{"POST", "/v1/drain", "", "", nil},
		{"POST", "/v1/drain", js, `{"own":true}`, nil},
		{"GET", "/v1/status?hash=false", "", "", nil},
		{"POST", "/v1/resume", "", "", nil},
		{"POST", "/v1/drain", js, ` {} `, nil},
		{"POST", "/v1/drain", js, `{"owns":true}`, nil},
		{"POST", "/v1/drain", js, `{"own":"yes"}`, nil},
		{"POST", "/v1/drain", js, `{"own":null}`, nil},
		{"POST", "/v1/drain", js, `{"own":{"deep":[true]}}`, nil},
		{"POST", "/v1/drain", js, `{"own":true,"own":false}`, nil},
		{"POST", "/v1/drain", js, `{"own":true`, nil},
		{"POST", "/v1/drain", js, `{"own":true} {}`, nil},
		{"POST", "/v1/drain", js, `null`, nil},
		{"POST", "/v1/drain", js, `[{"own":true}]`, nil},
		{"POST", "/v1/drain", js, long, nil},
		{"POST", "/v1/drain", "text/plain", `{"own":true}`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"selectors":["zone in (b, a)","gpu==a100","!old"]}`, nil},
		{"GET", "/v1/jobs/site-1.9", "", "", nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"selectors":["gpu","gpu>3"]}`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"selectors":["gpu=a 100"]}`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"selectors":{"gpu":"a100"}}`, nil},
		{"POST", "/v1/drain?own=true", js, ``, nil},
		{"POST", "/v1/resume", js, `{"own":true}`, nil},
		{"GET", "/v1/drain", "", "", nil},
		{"POST", "/v1/leave", js, `{"later":true}`, nil},
		{"POST", "/v1/leave", js, `{"now":true,"forget":1}`, nil},
		{"POST", "/v1/leave", js, `{"now":true,"forget":false}`, nil},
		{"GET", "/v1/jobs?state=&site=&label=&limit=&cursor=", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?state=queued&state=failed&tasks=1-5&limit=1", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?state=asleep", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?tasks=9-3", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/tasks?tasks=all", "", "", nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"indices":"17,3,40-60"}`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"indices":"17,3","count":3}`, nil},
		{"POST", "/v1/jobs", js, `{"command":["a"],"indices":"17;3"}`, nil},
		{"GET", "/v1/jobs/site-1.2/logs?tasks=0,2,9&stream=stderr&tail=1", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/logs?state=failed", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/logs?tasks=0&task=1", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/logs?all=true&attempt=1", "", "", nil},
		{"GET", "/v1/jobs/site-1.99/logs?all=true", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/logs?tail=0", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/rerun", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0,2", "", "", []string{"Idempotency-Key", "again"}},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0,2", "", "", []string{"Idempotency-Key", "again"}},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0", "", "", []string{"Idempotency-Key", "again"}},
		{"POST", "/v1/jobs/site-1.2/rerun?state=asleep", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0&memory=8Gi&cpu=2", "", "", []string{"Idempotency-Key", "again"}},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0&memory=8Gi&cpu=2&gpu=0&timeout=2h", "", "", []string{"Idempotency-Key", "more"}},
		{"GET", "/v1/jobs/site-1.12", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0&memory=much", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/rerun?tasks=0&cpu=-1", "", "", nil},
		{"POST", "/v1/jobs/site-1.99/rerun", "", "", nil},
		{"POST", "/v1/jobs/site-1.3/hold", "", "", nil},
		{"POST", "/v1/jobs/site-1.3/release", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/hold", "", "", nil},
		{"POST", "/v1/jobs/site-1.99/hold", "", "", nil},
		{"POST", "/v1/jobs/x/hold", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/priority?priority=5", "", "", nil},
		{"POST", "/v1/jobs/site-1.99/priority?priority=5", "", "", nil},
		{"POST", "/v1/jobs/x/priority?priority=5", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/priority", "", "", nil},
		{"POST", "/v1/jobs/site-1.2/priority?priority=1000001", "", "", nil},
		{"POST", "/v1/priority?priority=-5&job=site-1.2&job=site-1.99&job=site-1.3", "", "", nil},
		{"POST", "/v1/priority?priority=-5", "", "", nil},
		{"POST", "/v1/priority?priority=high&job=site-1.2", "", "", nil},
		{"POST", "/v1/cancel", "", "", nil},
		{"POST", "/v1/cancel?job=site-1.2/2&job=site-1.2/0&job=site-1.99&job=site-1.3&job=site-1.3", "", "", nil},
		{"POST", "/v1/cancel?job=nonsense", "", "", nil},
		{"POST", "/v1/cancel?job=site-1.2/x", "", "", nil},
		{"POST", "/v1/cancel?job=site-1.2&label=a%3Db", "", "", nil},
		{"POST", "/v1/cancel?label=", "", "", nil},
		{"POST", "/v1/cancel?label=a%3Db&label=a%3Dc", "", "", nil},
		{"GET", "/v1/wait", "", "", nil},
		{"GET", "/v1/wait?job=site-1.3&job=site-1.99&wait=1ms", "", "", nil},
		{"GET", "/v1/wait?job=site-1.2&wait=1ms", "", "", nil},
		{"GET", "/v1/wait?job=site-1.2/3&wait=1ms", "", "", nil},
		{"GET", "/v1/wait?job=site-1.2&wait=6m", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/files", "", "", nil},
		{"GET", "/v1/jobs/site-1.2/files/a?task=0", "", "", nil},
		{"GET", "/v1/jobs/site-1.99/files.tar", "", "", nil},
		{"POST", "/v1/blobs/missing", js, `{"sha256":["xyz"]}`, nil},
		{"POST", "/v1/imports", js, `{"url":"https://example.org/a"}`, nil},
		{"POST", "/v1/uploads", "", "", nil},
		{"GET", "/livez", "", "", nil},
		{"GET", "/readyz", "", "", nil},
		{"GET", "/nowhere", "", "", nil},
		{"GET", "/v1/nothing", "", "", nil},
		{"PATCH", "/v1/jobs", js, "{}", nil},
		{"DELETE", "/v1/ledger", "", "", nil},
	}
	s := newServer(newFake("site-1"))
	var out strings.Builder
	for _, q := range append(requests, memberRequests...) {
		w := ask(s, q.method, q.target, q.kind, q.body, q.headers...)
		shown := strings.ReplaceAll(q.body, "\r", "␍")
		if strings.HasPrefix(shown, "\x1f\x8b") {
			shown = fmt.Sprintf("(%d packed bytes)", len(q.body))
		}
		for i := 0; i+1 < len(q.headers); i += 2 {
			if q.headers[i] == "Content-Encoding" {
				shown += "\nContent-Encoding: " + q.headers[i+1]
			}
		}
		fmt.Fprintf(&out, "%s %s %s\n%.200s\n→ %d %s\n", q.method, q.target, q.kind, shown, w.Code, w.Header().Get("Content-Type"))
		for _, name := range []string{"X-CloudShare-Index", "Idempotency-Replayed", "Location", "Retry-After", "Allow", "Accept-Encoding"} {
			if v := w.Header().Get(name); v != "" {
				fmt.Fprintf(&out, "%s: %s\n", name, v)
			}
		}
		fmt.Fprintf(&out, "%s\n", w.Body)
		if w.Header().Get("X-CloudShare-Index") == "" {
			t.Errorf("%s %s: no index", q.method, q.target)
		}
		if w.Code >= 400 && w.Header().Get("Content-Type") != wire.TypeProblem {
			t.Errorf("%s %s: %d is no problem body", q.method, q.target, w.Code)
		}
	}
	golden(t, "answers.txt", out.String())
}

// packed is a body as gzip has it.
func packed(body string) string {
	var out strings.Builder
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(body)) // into memory
	_ = w.Close()
	return out.String()
}

// TestUnknownPathIsAPage where a browser asks; a program gets a problem.
func TestUnknownPathIsAPage(t *testing.T) {
	s := newServer(newFake("site-1"))
	for _, test := range []struct {
		path, accept, kind, text string
	}{
		{"/nowhere", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8", "to the federation</a>"},
		{"/nowhere", "*/*", wire.TypeProblem, "see /docs"},
		{"/v1/nowhere", "text/html", wire.TypeProblem, "see /docs"},
	} {
		w := ask(s, "GET", test.path, "", "", "Accept", test.accept)
		if w.Code != 404 || w.Header().Get("Content-Type") != test.kind || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%s for %s: %d %s\n%s", test.path, test.accept, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}

// TestErrorTable gives every documented error of the broker to a client.
func TestErrorTable(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	var lines []string
	for _, row := range problem.Table {
		f.submit = fmt.Errorf("submit: %w", row.Err)
		w := ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
		lines = append(lines, fmt.Sprintf("%-40v %d retry %-2s %s", row.Err, w.Code, w.Header().Get("Retry-After"), typeOf(t, w.Body.Bytes())))
	}
	for _, kind := range []string{js, wire.TypeNDJSON} {
		f.submit = &node.QuotaError{Site: "site-1", Use: fsm.Use{Quota: command.QuotaTasks, Used: 9, Limit: 10}, Need: 2}
		w := ask(s, "POST", "/v1/jobs", kind, `{"command":["a"]}`)
		lines = append(lines, fmt.Sprintf("quota, as %s: %d retry %s %s", kind, w.Code, w.Header().Get("Retry-After"), strings.TrimSpace(w.Body.String())))
	}
	for _, row := range problem.Roster {
		f.submit = &node.RosterError{Doing: "ban site-2", Code: row.Code}
		w := ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
		lines = append(lines, fmt.Sprintf("%-40.40v %d retry %-2s %s", row.Code, w.Code, w.Header().Get("Retry-After"), typeOf(t, w.Body.Bytes())))
	}
	f.submit = errDisk
	w := ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	if w.Code != 500 || strings.Contains(w.Body.String(), "fire") {
		t.Errorf("an unknown error: %d %s", w.Code, w.Body)
	}
	f.ready, f.live = node.ErrNotReady, errDisk
	for _, path := range []string{"/readyz", "/livez"} {
		w := ask(s, "GET", path, "", "")
		lines = append(lines, fmt.Sprintf("%-40s %d retry %-2s %s", path, w.Code, w.Header().Get("Retry-After"), typeOf(t, w.Body.Bytes())))
	}
	sort.Strings(lines)
	golden(t, "errors.txt", strings.Join(lines, "\n")+"\n")
}

func typeOf(t *testing.T, body []byte) string {
	t.Helper()
	var p wire.Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Status == 0 || p.Title == "" {
		t.Fatalf("no problem: %s (%v)", body, err)
	}
	return p.Type
}
