package imports

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/outward"
)

// TestObjects come whole, whatever their keys are, and only those of the buckets and folders that are allowed.
func TestObjects(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed()})
	for i, key := range []string{
		"ref.fa", "a/b/c", "blank s",
		"ü/日本", "%2F%", "a+b&c=d?e#f", "a//b", "quote'\"<>", "emoji\U0001F9EC", "~._-!*()", "semi;colon:at@", "{a}[b]^|`", `back\slash`, "end/",
		strings.Repeat("k", 1024), "\u202e", "�",
	} {
		content := fmt.Sprint("content ", i)
		r.put(key, content)
		want := files.BlobOf([]byte(content))
		for _, hash := range []files.Hash{{}, want.Hash} {
			s, err := r.end("s3://data/"+key, hash)
			if err != nil || s.Blob != want || s.Size != want.Size || s.Received != want.Size {
				t.Errorf("%.40q: %+v %v", key, s, err)
			}
		}
	}
	r.put("empty", "")
	if s, err := r.end("s3://data/empty", files.Hash{}); err != nil || s.Blob != files.BlobOf(nil) {
		t.Errorf("empty: %+v %v", s, err)
	}
	long := pattern(1 << 20)
	r.put("long", long)
	if s, err := r.end("s3://data/long", files.Hash{}); err != nil || s.Blob != files.BlobOf([]byte(long)) {
		t.Errorf("long: %+v %v", s, err)
	}
}

// TestObjectsOfHosts: a bucket may stand before the name of its host.
func TestObjectsOfHosts(t *testing.T) {
	s3 := signed()
	s3.Endpoint, s3.HostStyle = "https://example.com", true
	r := newS3Rig(t, Config{Private: true, S3: s3})
	r.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, r.host.Listener.Addr().String())
	}
	r.put("a b", "x")
	if s, err := r.end("s3://data/a b", files.Hash{}); err != nil || s.Blob != files.BlobOf([]byte("x")) {
		t.Fatalf("%+v %v", s, err)
	}
	if q := <-r.asked; q.Host != "data.example.com" || q.URL.EscapedPath() != "/a%20b" {
		t.Errorf("%s%s", q.Host, q.URL)
	}
}

// TestPublicBuckets are asked as nobody.
func TestPublicBuckets(t *testing.T) {
	r := newS3Rig(t, Config{Private: true})
	r.put("a", "x")
	if s, err := r.end("s3://data/a", files.Hash{}); err != nil || !s.Done {
		t.Errorf("%+v %v", s, err)
	}
}

// TestPlainS3 only if that is said.
func TestPlainS3(t *testing.T) {
	s3 := signed()
	s3.Plain = true
	r := newS3Rig(t, Config{Private: true, S3: s3})
	r.put("a", "x")
	if s, err := r.end("s3://data/a", files.Hash{}); err != nil || !s.Done {
		t.Errorf("%+v %v", s, err)
	}
	s3.Endpoint, s3.Plain = r.host.URL, false
	not := New(Config{Store: r.store, Private: true, S3: s3, Buckets: r.cfg.Buckets})
	defer not.Close()
	if _, err := not.Import("alice", "s3://data/a", files.Hash{}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

// TestRefusedObjects are never asked for: nothing is allowed that was not named.
func TestRefusedObjects(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed(), Buckets: []files.Object{{Bucket: "data", Key: "public"}}})
	for url, why := range map[string]string{
		"s3://other/public/a":                             "data.fetch_from",
		"s3://data/secret":                                "data.fetch_from",
		"s3://data/publicity":                             "data.fetch_from",
		"s3://data/public/../secret":                      "part . or ..",
		"s3://data/public/..\\..\\secret":                 "part . or ..",
		"s3://data/public/\x00":                           "control characters",
		"s3://data/public/\xff":                           "no UTF-8",
		"s3://data":                                       "s3://BUCKET/KEY",
		"s3://" + testAccess + ":x@data/public/a":         "no bucket",
		"s3://127.0.0.1/a":                                "no bucket",
		"S3://data/public/a":                              "only https and s3",
		"s3://data/public/" + strings.Repeat("k", MaxURL): "2048 bytes",
	} {
		_, err := r.Import("alice", url, files.Hash{})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), why) || strings.ContainsAny(err.Error(), "\x00\n") {
			t.Errorf("%.60q: %v, want %s", url, err, why)
		}
	}
	none := New(Config{Store: r.store, S3: signed()})
	defer none.Close()
	nowhere := New(Config{Store: r.store, Buckets: []files.Object{{Bucket: "data"}}})
	defer nowhere.Close()
	for m, why := range map[*Imports]string{none: "data.fetch_from", nowhere: "data.s3.endpoint"} {
		if _, err := m.Import("alice", "s3://data/a", files.Hash{}); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, why)
		}
	}
	if len(r.asked) != 0 {
		t.Errorf("the server was asked %d times", len(r.asked))
	}
}

// TestObjectsAtPrivateAddresses: that of the endpoint is checked like those of URLs.
func TestObjectsAtPrivateAddresses(t *testing.T) {
	r := newS3Rig(t, Config{S3: signed()})
	r.put("a", "x")
	r.refuses("s3://data/a", files.Hash{}, ErrRefused, "data.fetch_private")
	if len(r.asked) != 0 {
		t.Error("the server was asked")
	}
}

// TestUnknownAuthorities: a server that nobody vouches for is not asked.
func TestUnknownAuthorities(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed()})
	r.http.Transport.(*http.Transport).TLSClientConfig.RootCAs = x509.NewCertPool()
	r.refuses("s3://data/a", files.Hash{}, ErrFailed, "unknown authority")
	if len(r.asked) != 0 {
		t.Error("the server was asked")
	}
}

// TestObjectsThatDoNotCome: why is said in one line, without secrets and without words of the server's.
func TestObjectsThatDoNotCome(t *testing.T) {
	buckets := []files.Object{{Bucket: "data"}, {Bucket: "gone"}}
	r := newS3Rig(t, Config{Private: true, MaxBytes: 100, S3: signed(), Buckets: buckets})
	r.put("here", "x")
	r.put("long", pattern(101))
	r.refuses("s3://data/missing", files.Hash{}, ErrFailed, `bucket "data" has no object "missing"`)
	r.refuses("s3://gone/a", files.Hash{}, ErrFailed, `no bucket "gone"`)
	r.refuses("s3://data/long", files.Hash{}, ErrRefused, "101 bytes, more than the 100")
	r.refuses("s3://data/here", files.HashOf(nil), ErrRefused, "SHA-256")
	for words, serve := range map[string]http.HandlerFunc{
		`403 Forbidden, "AccessDenied"`: func(w http.ResponseWriter, _ *http.Request) {
			deny(w, "AccessDenied", testAccess+" "+testSecret)
		},
		"403 Forbidden, \"yyy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Minio-Error-Code", strings.Repeat("y", 10000))
			w.WriteHeader(http.StatusForbidden)
		},
		`region "us-west-9", not "eu-test-1"`: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "us-west-9")
			w.Header().Set("Location", "https://169.254.169.254/data/here")
			answer(w, http.StatusMovedPermanently, "PermanentRedirect", "")
		},
		`400 Bad Request, "a\nb"`: func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusBadRequest, "a&#10;b", "")
		},
		"307 Temporary Redirect": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "https://"+q.Host+"/data/elsewhere", http.StatusTemporaryRedirect)
		},
		"503 Service Unavailable": func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusServiceUnavailable, "SlowDown", "")
		},
		"500 Internal Server Error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("<", 1<<20))
		},
		"how many bytes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("ETag", `"x"`)
			_ = http.NewResponseController(w).Flush()
		},
		"(ETag)": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = io.WriteString(w, "x")
		},
		"another part": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Content-Range", "bytes 1-1/2")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "x")
		},
		"not understood": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Last-Modified", "yesterday")
			_, _ = io.WriteString(w, "x")
		},
	} {
		asked := 0
		r.before = func(w http.ResponseWriter, q *http.Request) bool {
			asked++
			serve(w, q)
			return true
		}
		r.refuses("s3://data/here", files.Hash{}, ErrFailed, words)
		if asked != 1 {
			t.Errorf("%s: asked %d times", words, asked)
		}
	}
}

// TestWrongKeyIsDenied, and said without the key.
func TestWrongKeyIsDenied(t *testing.T) {
	s3 := signed()
	s3.SecretKey = "wrong"
	r := newS3Rig(t, Config{Private: true, S3: s3})
	r.put("a", "x")
	r.refuses("s3://data/a", files.Hash{}, ErrFailed, "which the site's operator sets")
}

// TestCookiesOfServers are not kept.
func TestCookiesOfServers(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed()})
	r.put("a", "x")
	r.before = func(w http.ResponseWriter, q *http.Request) bool {
		if q.Header.Get("Cookie") != "" || q.Header.Get("User-Agent") != outward.UserAgent {
			t.Errorf("%v", q.Header)
		}
		w.Header().Set("Set-Cookie", "a=b")
		return false
	}
	if _, err := r.end("s3://data/a", files.Hash{}); err != nil || len(r.asked) != 2 {
		t.Errorf("%d questions: %v", len(r.asked), err)
	}
}

// TestEndlessAnswers: servers that send errors or nothing without an end are left, in time.
func TestEndlessAnswers(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"error": func(w http.ResponseWriter, q *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			for q.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<16))
			}
		},
		"silent": func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() },
		"slow": func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, "a little")
			_ = http.NewResponseController(w).Flush()
			<-q.Context().Done()
		},
	} {
		r := newS3Rig(t, Config{Private: true, S3: signed(), Stall: 50 * time.Millisecond})
		r.before = func(w http.ResponseWriter, q *http.Request) bool {
			serve(w, q)
			return true
		}
		t.Log(name)
		r.refuses("s3://data/a", files.Hash{}, ErrFailed, "too little came")
	}
}

// TestCloseLeavesObjects that are being read.
func TestCloseLeavesObjects(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed()})
	began := make(chan struct{})
	r.before = func(_ http.ResponseWriter, q *http.Request) bool {
		close(began)
		<-q.Context().Done()
		return true
	}
	if _, err := r.Import("alice", "s3://data/a", files.Hash{}); err != nil {
		t.Fatal(err)
	}
	<-began
	r.Imports.Close()
}

// TestS3Validate: what is wrong is said without the secret.
func TestS3Validate(t *testing.T) {
	for _, ok := range []S3{
		{},
		{Endpoint: "https://s3.example.org"},
		{Endpoint: "https://s3.example.org:9000/", Region: "eu-1", AccessKey: "a", SecretKey: "b"},
		{Endpoint: "http://10.0.0.1:9000", Plain: true},
		{Endpoint: "https://[2606:4700::1]:9000"},
	} {
		if err := ok.Validate(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
	for _, c := range []struct {
		s3  S3
		why string
	}{
		{S3{Region: "eu-1"}, "endpoint is missing"},
		{S3{AccessKey: "a", SecretKey: testSecret}, "endpoint is missing"},
		{S3{Endpoint: "s3.example.org"}, "must be https://"},
		{S3{Endpoint: "ftp://s3.example.org"}, "must be https://"},
		{S3{Endpoint: "https://a:secret@s3.example.org"}, "nothing before"},
		{S3{Endpoint: "https://s3.example.org/bucket"}, "nothing before or behind"},
		{S3{Endpoint: "https://s3.example.org?x"}, "nothing before or behind"},
		{S3{Endpoint: "https://s3 .example.org"}, "endpoint"},
		{S3{Endpoint: "http://s3.example.org"}, "insecure"},
		{S3{Endpoint: "https://s3.example.org", AccessKey: "a"}, "go together"},
		{S3{Endpoint: "https://s3.example.org", SecretKey: testSecret}, "go together"},
		{S3{Endpoint: "https://s3.example.org", AccessKey: "a", SecretKey: testSecret + "\n"}, "printable"},
		{S3{Endpoint: "https://s3.example.org", Region: "eu 1"}, "printable"},
	} {
		err := c.s3.Validate()
		if err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%+v: %v, want %s", c.s3, err, c.why)
		}
	}
}
