package api

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestOpenAPI compares the document with its golden, and checks that every
// reference in it leads somewhere.
func TestOpenAPI(t *testing.T) {
	w := ask(newServer(newFake("site-1")), "GET", "/openapi.json", "", "")
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", doc["openapi"])
	}
	resolve(t, doc, doc)
	pretty, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi.json", string(pretty)+"\n")
}

// resolve follows every $ref below v.
func resolve(t *testing.T, doc map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			resolve(t, doc, e)
		}
	case map[string]any:
		for k, e := range v {
			ref, ok := e.(string)
			if k != "$ref" || !ok {
				resolve(t, doc, e)
				continue
			}
			var at any = doc
			for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[part]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
	}
}

// elsewhere finds what a page loads, or leads to, at another host: words of it may name URLs.
var elsewhere = regexp.MustCompile(`(?i)\b(?:src|href|srcset|action)\s*=\s*["']?\s*(?:[a-z]+:)?//[^"'>]*`)

// TestDocsAreOffline: the page works on a machine without a network.
func TestDocsAreOffline(t *testing.T) {
	s := newServer(newFake("site-1"))
	w := ask(s, "GET", "/docs", "", "")
	page := w.Body.String()
	if w.Code != 200 || !strings.Contains(page, "POST /v1/jobs") || !strings.Contains(page, "Idempotency-Key") {
		t.Errorf("%d: %.200s", w.Code, page)
	}
	if found := elsewhere.FindString(page); found != "" {
		t.Errorf("the page loads something from elsewhere: %s", found)
	}
}

// TestMetrics: requests are counted by route, whatever path was asked for.
func TestMetrics(t *testing.T) {
	s := newServer(newFake("site-1"))
	ask(s, "POST", "/v1/jobs", js, `{"command":["a"]}`)
	ask(s, "POST", "/v1/jobs", js, `{}`)
	ask(s, "GET", "/v1/jobs/site-1.1", "", "")
	ask(s, "BREW", "/v1/nothing/secret", "", "")
	page := ask(s, "GET", "/metrics", "", "").Body.String()
	for _, want := range []string{
		"cloudshare_http_jobs_accepted_total 1", "cloudshare_http_jobs_refused_total 1",
		`route="/v1/jobs/:id",status="200"`, `method="other"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in:\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") || strings.Contains(page, "BREW") {
		t.Error("a client can make labels of its own")
	}
}

// Found by review: an answer without a body had no index.
func TestNoMetricOfThatName(t *testing.T) {
	w := ask(newServer(newFake("site-1")), "GET", "/metrics?name%5B%5D=none", "", "")
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("X-CloudShare-Index") == "" {
		t.Errorf("%d, %q, %v", w.Code, w.Body, w.Header())
	}
}
