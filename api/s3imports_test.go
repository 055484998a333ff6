package api

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/imports"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// newObjects is a site that may fetch what is below public/ in a bucket of a server.
func newObjects(t *testing.T, keys ...string) *site {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("data"); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		meta := map[string]string{"Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT"}
		if _, err := backend.PutObject("data", key, meta, strings.NewReader(key), int64(len(key)), nil); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewTLSServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s := &site{t: t, fake: newFake("site-1"), dir: t.TempDir()}
	s.uploads = s.fake.keepFiles(t, s.dir, 1<<20)
	s.Server = serve(t, s.fake, Config{Uploads: s.uploads, Imports: imports.Config{
		Buckets: []files.Object{{Bucket: "data", Key: "public"}}, Private: true, Roots: roots,
		S3: imports.S3{Endpoint: server.URL, AccessKey: "id", SecretKey: "not-to-be-seen"},
	}})
	return s
}

// TestObjectsAreImported: by a request and by a job's inputs; what does not come is 422, with why in one line.
func TestObjectsAreImported(t *testing.T) {
	const key = "public/ref 1%.fa"
	s := newObjects(t, key, "secret")
	want := files.BlobOf([]byte(key))
	var got wire.Blob
	w := s.imported(fmt.Sprintf(`{"url":"s3://data/%s"}`, key))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got.SHA256 != want.Hash.String() {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	spec := jobspec.Spec{Inputs: []jobspec.Input{{Path: "a", From: jobspec.FromURL, URL: "s3://data/" + key}}}
	if err := s.blobs.Resolve(t.Context(), &spec); err != nil || spec.Inputs[0].Blob != want {
		t.Errorf("%+v %v", spec.Inputs, err)
	}
	for url, why := range map[string]string{
		"s3://data/secret":           "data.fetch_from",
		"s3://other/public/a":        "data.fetch_from",
		"s3://data/public/../secret": "part . or ..",
		"s3://data/public/gone":      `has no object \"public/gone\"`,
		"s3://data":                  "s3://BUCKET/KEY",
	} {
		w := s.imported(fmt.Sprintf(`{"url":%q}`, url))
		if text := w.Body.String(); w.Code != 422 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":import-refused") ||
			!strings.Contains(text, why) || strings.Contains(text, "not-to-be-seen") {
			t.Errorf("%s: %d %s", url, w.Code, text)
		}
	}
}
