package api

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/imports"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// newImporting is a site that may ask a host for files, each of which is its path; go lets the host answer.
func newImporting(t *testing.T) (s *site, host string, answer chan struct{}) {
	t.Helper()
	answer = make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-answer
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s = &site{t: t, fake: newFake("site-1"), dir: t.TempDir()}
	s.uploads = s.fake.keepFiles(t, s.dir, 1<<20)
	s.imports = imports.Config{Hosts: []string{server.Listener.Addr().String()}, Private: true, Roots: roots}
	s.Server = serve(t, s.fake, Config{Uploads: s.uploads, Imports: s.imports})
	return s, server.URL, answer
}

// imported asks for an import until it has ended.
func (s *site) imported(body string) *httptest.ResponseRecorder {
	for {
		if w := ask(s.Server, "POST", "/v1/imports", js, body); w.Code != http.StatusAccepted {
			return w
		}
	}
}

// TestImportsAreAskedForAgain until they are there, and the file is the user's then.
func TestImportsAreAskedForAgain(t *testing.T) {
	s, host, answer := newImporting(t)
	want := files.BlobOf([]byte("/ref.fa"))
	body := fmt.Sprintf(`{"url":"%s/ref.fa","sha256":"%s"}`, host, want.Hash)
	w := ask(s.Server, "POST", "/v1/imports", js, body)
	if w.Code != 202 || !strings.Contains(w.Body.String(), `{"received":0,"size":-1}`) || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	close(answer)
	var got wire.Blob
	w = s.imported(body)
	err := json.Unmarshal(w.Body.Bytes(), &got)
	if err != nil || w.Code != 200 || got.SHA256 != want.Hash.String() || got.Size != 7 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w = ask(s.Server, "GET", "/v1/blobs/"+got.SHA256, "", ""); w.Body.String() != "/ref.fa" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for body, name := range map[string]string{
		fmt.Sprintf(`{"url":"%s/ref.fa","sha256":"%s"}`, host, files.HashOf(nil)): "import-refused",
		`{"url":"https://example.org/x"}`:                                         "import-refused",
		`{"url":"http://127.0.0.1/x"}`:                                            "import-refused",
		`{"url":""}`:                                                              "invalid-request",
		`{"url":"https://example.org/x","sha256":"x"}`:                            "invalid-request",
		`{"uri":"https://example.org/x"}`:                                         "invalid-request",
	} {
		if w := s.imported(body); w.Code != 422 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":"+name) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// TestInputsOfJobsAreImported: all of a spec are begun at once, and it passes when all are there.
func TestInputsOfJobsAreImported(t *testing.T) {
	s, host, answer := newImporting(t)
	a, b := files.BlobOf([]byte("/a")), files.BlobOf([]byte("/b"))
	spec := jobspec.Spec{Inputs: []jobspec.Input{
		{Path: "a", From: jobspec.FromURL, URL: host + "/a", Blob: files.Blob{Size: jobspec.UnknownSize}},
		{Path: "c", From: jobspec.FromContent, Content: []byte("c")},
		{Path: "b", From: jobspec.FromURL, URL: host + "/b", Blob: files.Blob{Hash: b.Hash, Size: jobspec.UnknownSize}},
	}}
	resolve := func() *problem.Problem {
		var p *problem.Problem
		if err := s.blobs.Resolve(t.Context(), &spec); err != nil && !errors.As(err, &p) {
			t.Fatal(err)
		}
		return p
	}
	p := resolve()
	if p == nil || p.Status != 503 || p.RetryAfter == 0 || !strings.HasSuffix(p.Type, ":import-under-way") ||
		p.Field != "inputs.0.url" {
		t.Fatalf("%+v", p)
	}
	close(answer)
	for p != nil {
		p = resolve()
	}
	if in := spec.Inputs; in[0].Blob != a || in[2].Blob != b || in[1].Blob != (files.Blob{}) {
		t.Errorf("%+v", spec.Inputs)
	}
	spec.Inputs[2] = jobspec.Input{Path: "d", From: jobspec.FromURL, URL: "ftp://example.org/d"}
	err := s.blobs.Resolve(t.Context(), &spec)
	if !errors.Is(err, imports.ErrRefused) || !strings.HasPrefix(err.Error(), "inputs.2.url: ") {
		t.Error(err)
	}
}
