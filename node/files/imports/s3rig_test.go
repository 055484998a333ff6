package imports

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/cloudshare/cloudshare/node/files"
)

// The keys of the broker in these tests.
const (
	testAccess = "AKIDTESTACCESS"
	testSecret = "not/to+be/seen"
	testRegion = "eu-test-1"
)

// s3Rig is an S3 server by https, which knows one key, and imports that may ask it for what is in bucket data.
type s3Rig struct {
	t       *testing.T
	backend *s3mem.Backend
	host    *httptest.Server
	store   *memory
	asked   chan *http.Request
	// before may answer a question in the server's place, and says whether it did.
	before func(w http.ResponseWriter, q *http.Request) bool
	*Imports
}

func newS3Rig(t *testing.T, cfg Config) *s3Rig {
	t.Helper()
	r := &s3Rig{t: t, backend: s3mem.New(), asked: make(chan *http.Request, 1000)}
	r.store = &memory{have: map[string][]byte{}}
	server := gofakes3.New(r.backend, gofakes3.WithHostBucketBase("example.com")).Server()
	handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked <- q.Clone(context.Background()) // what serves it changes it
		switch why := badSignature(q); {
		case r.before != nil && r.before(w, q):
		case cfg.S3.AccessKey == "" && q.Header.Get("Authorization") == "": // a public bucket
			server.ServeHTTP(w, q)
		case why != "":
			deny(w, "SignatureDoesNotMatch", why+" of "+testAccess)
		default:
			server.ServeHTTP(w, q)
		}
	})
	r.host = httptest.NewUnstartedServer(handler)
	r.host.Config.ErrorLog = log.New(io.Discard, "", 0) // many a client goes amid an answer
	if cfg.S3.Plain {
		r.host.Start()
	} else {
		r.host.StartTLS()
		cfg.Roots = x509.NewCertPool()
		cfg.Roots.AddCert(r.host.Certificate())
	}
	t.Cleanup(r.host.Close)
	if cfg.S3.Endpoint == "" {
		cfg.S3.Endpoint = r.host.URL
	}
	if cfg.Buckets == nil {
		cfg.Buckets = []files.Object{{Bucket: "data"}}
	}
	cfg.Store = r.store
	r.Imports = New(cfg)
	t.Cleanup(r.Imports.Close)
	for _, bucket := range []string{"data", "other"} {
		if err := r.backend.CreateBucket(bucket); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// signed is what asks with the right key.
func signed() S3 { return S3{Region: testRegion, AccessKey: testAccess, SecretKey: testSecret} }

func (r *s3Rig) put(key, content string) {
	r.t.Helper()
	meta := map[string]string{"Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT"}
	if _, err := r.backend.PutObject("data", key, meta, strings.NewReader(content), int64(len(content)), nil); err != nil {
		r.t.Fatal(err)
	}
}

// end imports until that has ended.
func (r *s3Rig) end(url string, want files.Hash) (State, error) {
	r.t.Helper()
	for {
		s, err := r.Import("alice", url, want)
		if s.Done || err != nil {
			return s, err
		}
		r.under.Wait()
	}
}

// refuses checks that a fetch ends with an error in one line, which has certain words and no secret.
func (r *s3Rig) refuses(url string, want files.Hash, is error, words string) {
	r.t.Helper()
	s, err := r.end(url, want)
	if err == nil || s.Done {
		r.t.Errorf("%.80q: came", url)
		return
	}
	if text := err.Error(); !errors.Is(err, is) || !strings.Contains(text, words) || strings.ContainsAny(text, "\n\r") ||
		strings.Contains(text, testSecret) || strings.Contains(text, testAccess) || len(text) > 700 {
		r.t.Errorf("%.80q: %v; want %q", url, err, words)
	}
	if len(r.store.have) != 0 {
		r.t.Errorf("%.80q: kept %q", url, r.store.have)
	}
	r.mu.Lock()
	clear(r.all)
	r.mu.Unlock()
}

func deny(w http.ResponseWriter, code, message string) {
	answer(w, http.StatusForbidden, code, message)
}

func answer(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

// badSignature says what is wrong with the signature of a question, computed by the specification alone:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
func badSignature(q *http.Request) string {
	got := q.Header.Get("Authorization")
	date := q.Header.Get("X-Amz-Date")
	if len(date) != len("20060102T150405Z") {
		return "no date"
	}
	names := ""
	if _, rest, named := strings.Cut(got, "SignedHeaders="); named {
		names, _, _ = strings.Cut(rest, ",")
	}
	canonical := new(strings.Builder)
	fmt.Fprintf(canonical, "%s\n%s\n%s\n", q.Method, q.URL.EscapedPath(), q.URL.RawQuery)
	for name := range strings.SplitSeq(names, ";") {
		value := q.Header.Get(name)
		if name == "host" {
			value = q.Host
		}
		fmt.Fprintf(canonical, "%s:%s\n", name, value)
	}
	fmt.Fprintf(canonical, "\n%s\n%s", names, q.Header.Get("X-Amz-Content-Sha256"))
	scope := date[:8] + "/" + testRegion + "/s3/aws4_request"
	sum := sha256.Sum256([]byte(canonical.String()))
	text := "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + testSecret)
	for _, part := range []string{date[:8], testRegion, "s3", "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, part)
		key = mac.Sum(nil)
	}
	want := fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", testAccess, scope, names, key)
	if got != want || !strings.Contains(names, "host") {
		return "wrong signature"
	}
	return ""
}

// pattern is n bytes, no two neighbouring parts of which are the same.
func pattern(n int) string {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}
