package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/imports"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/files/uploads"
)

// site is a broker's server that keeps files, and can be started again.
type site struct {
	*Server
	t       *testing.T
	fake    *fakeBroker
	uploads *uploads.Uploads
	imports imports.Config // of its Server, if that fetches anything
	dir     string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, fake: newFake("site-1"), dir: t.TempDir()}
	s.uploads = s.fake.keepFiles(t, s.dir, 256<<20)
	s.start()
	return s
}

func (s *site) start() { s.Server = serve(s.t, s.fake, Config{Uploads: s.uploads}) }

// restart has the broker begin again with what is on its disk.
func (s *site) restart() {
	s.t.Helper()
	if err := s.Shutdown(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if err := s.uploads.Close(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.fake.store.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.uploads = s.fake.keepFiles(s.t, s.dir, s.fake.own)
	s.start()
}

const resumable = "Tus-Resumable"

func metadataOf(b files.Blob) string {
	packed := base64.StdEncoding.EncodeToString
	return "filename " + packed([]byte("a b.bin")) + ",sha256 " + packed([]byte(b.Hash.String())) + ",is_confidential"
}

// begin asks for an upload, and returns where it is and goes on.
func (s *site) begin(b files.Blob) (location string, offset int64) {
	s.t.Helper()
	w := ask(s.Server, "POST", "/v1/uploads", "", "", resumable, "1.0.0", "Upload-Length", strconv.FormatInt(b.Size, 10), "Upload-Metadata", metadataOf(b))
	if w.Code != http.StatusCreated || w.Header().Get(resumable) != "1.0.0" {
		s.t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	return w.Header().Get("Location"), offsetOf(s.t, w.Header())
}

func offsetOf(t *testing.T, h http.Header) int64 {
	t.Helper()
	n, err := strconv.ParseInt(h.Get("Upload-Offset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *site) head(at string) *httptest.ResponseRecorder {
	return ask(s.Server, "HEAD", at, "", "", resumable, "1.0.0")
}

func (s *site) patch(at string, offset int64, body []byte) *httptest.ResponseRecorder {
	return ask(s.Server, "PATCH", at, "application/offset+octet-stream", string(body), resumable, "1.0.0", "Upload-Offset", strconv.FormatInt(offset, 10))
}

// sendCut begins to send the rest of a content, and hangs up after so many bytes.
func (s *site) sendCut(at string, offset int64, rest []byte, after int) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\nContent-Type: application/offset+octet-stream\r\nUpload-Offset: %d\r\nContent-Length: %d\r\n\r\n", at, offset, len(rest))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err = conn.Write(rest[:after]); err != nil {
		s.t.Fatal(err)
	}
	tcp, _ := conn.(*net.TCPConn)
	if err = tcp.CloseWrite(); err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until the broker has done with it
	_ = conn.Close()
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// TestUploadIsResumed: a client that follows the protocol, cut in the middle of its chunks by whatever end, before
// servers that are started again, comes to the file's end.
func TestUploadIsResumed(t *testing.T) {
	s := newSite(t)
	content := randomBytes(2*files.PieceBytes + 4321)
	b := files.BlobOf(content)
	at, offset := s.begin(b)
	if want := "/v1/uploads/" + b.Hash.String() + "-" + strconv.Itoa(len(content)); at != want || offset != 0 {
		t.Fatalf("%s from %d, want %s", at, offset, want)
	}
	cuts := []int{1000, files.PieceBytes - 1000, 1, files.PieceBytes + 17}
	sum := int64(0)
	for i, n := range cuts {
		s.sendCut(at, sum, content[sum:], n)
		sum += int64(n)
		if i%2 == 0 {
			s.restart()
		}
		w := s.head(at)
		if w.Code != 200 || offsetOf(t, w.Header()) != sum || w.Header().Get("Upload-Length") != strconv.Itoa(len(content)) ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("after %d bytes: %d %v %s", sum, w.Code, w.Header(), w.Body)
		}
		if w = s.patch(at, sum-1, content[sum-1:]); w.Code != 409 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":wrong-offset") {
			t.Errorf("at another offset: %d %s", w.Code, w.Body)
		}
	}
	if _, offset = s.begin(b); offset != sum {
		t.Errorf("begun again at %d, not %d", offset, sum)
	}
	if w := s.patch(at, sum, content[sum:]); w.Code != 204 || offsetOf(t, w.Header()) != b.Size {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if err := s.fake.store.Verify(store.OwnOf(""), b.Hash); err != nil {
		t.Error(err)
	}
	if _, offset = s.begin(b); offset != b.Size {
		t.Errorf("what is there begins at %d", offset)
	}
	if w := s.head(at); w.Code != 200 || offsetOf(t, w.Header()) != b.Size {
		t.Errorf("its end: %d %v", w.Code, w.Header())
	}
	if w := s.patch(at, b.Size, nil); w.Code != 204 {
		t.Errorf("nothing more: %d %s", w.Code, w.Body)
	}
}

// TestSlowUploadIsCut when no byte comes for a while, and what has come stays.
func TestSlowUploadIsCut(t *testing.T) {
	s := newSite(t)
	s.Server = serve(t, s.fake, Config{Uploads: s.uploads, BodyTimeout: 50 * time.Millisecond})
	content := randomBytes(1000)
	at, _ := s.begin(files.BlobOf(content))
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\n"+
		"Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nContent-Length: 1000\r\n\r\n%s", at, content[:300])
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 408 || !res.Close || !strings.HasSuffix(typeOf(t, body), ":slow-body") {
		t.Errorf("%d %s %v", res.StatusCode, body, err)
	}
	if w := s.head(at); offsetOf(t, w.Header()) != 300 {
		t.Errorf("%v", w.Header())
	}
}

// TestUploadOfWrongBytes is gone, and the file can be sent right.
func TestUploadOfWrongBytes(t *testing.T) {
	s := newSite(t)
	b := files.BlobOf([]byte("right"))
	at, _ := s.begin(b)
	if w := s.patch(at, 0, []byte("wrong")); w.Code != 422 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":wrong-hash") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.head(at); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	at, offset := s.begin(b)
	if w := s.patch(at, offset, []byte("right")); offset != 0 || w.Code != 204 {
		t.Errorf("from %d: %d %s", offset, w.Code, w.Body)
	}
}

// TestUploadIsGivenUp: it and its pieces are gone.
func TestUploadIsGivenUp(t *testing.T) {
	s := newSite(t)
	content := randomBytes(files.PieceBytes + 5)
	at, _ := s.begin(files.BlobOf(content))
	if w := s.patch(at, 0, content[:files.PieceBytes+1]); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := ask(s.Server, "DELETE", at, "", "", resumable, "1.0.0"); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := s.patch(at, files.PieceBytes+1, content[files.PieceBytes+1:]); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if use := s.fake.store.Usage(store.Own); use.Bytes != 0 {
		t.Errorf("%+v are left", use)
	}
}

// TestUploadProtocol: what the protocol asks for beside the way that all goes well.
func TestUploadProtocol(t *testing.T) {
	s := newSite(t)
	w := ask(s.Server, "OPTIONS", "/v1/uploads", "", "")
	h := w.Header()
	if w.Code != 204 || h.Get("Tus-Version") != "1.0.0" || h.Get("Tus-Extension") != "creation,termination" || h.Get("Tus-Max-Size") != strconv.Itoa(files.MaxFile) {
		t.Errorf("%d %v", w.Code, h)
	}
	empty := files.BlobOf(nil)
	if _, offset := s.begin(empty); offset != 0 {
		t.Error(offset)
	}
	if w = ask(s.Server, "GET", "/v1/blobs/"+empty.Hash.String(), "", ""); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("an empty file: %d %s", w.Code, w.Body)
	}
	b := files.BlobOf([]byte("abc"))
	at, _ := s.begin(b)
	meta := metadataOf(b)
	for _, c := range []struct {
		what, method, path, kind string
		status                   int
		headers                  []string
	}{
		{"no version", "POST", "/v1/uploads", "", 412, []string{"Upload-Length", "3", "Upload-Metadata", meta}},
		{"another version", "HEAD", at, "", 412, []string{resumable, "0.2.2"}},
		{"no length", "POST", "/v1/uploads", "", 400, []string{resumable, "1.0.0", "Upload-Metadata", meta}},
		{"a length to come", "POST", "/v1/uploads", "", 400, []string{resumable, "1.0.0", "Upload-Defer-Length", "1", "Upload-Metadata", meta}},
		{"too long", "POST", "/v1/uploads", "", 413, []string{resumable, "1.0.0", "Upload-Length", strconv.Itoa(files.MaxFile + 1), "Upload-Metadata", meta}},
		{"beyond the quota", "POST", "/v1/uploads", "", 503, []string{resumable, "1.0.0", "Upload-Length", strconv.Itoa(files.MaxFile), "Upload-Metadata", metadataOf(files.BlobOf([]byte("huge")))}},
		{"no metadata", "POST", "/v1/uploads", "", 400, []string{resumable, "1.0.0", "Upload-Length", "3"}},
		{"no hash", "POST", "/v1/uploads", "", 400, []string{resumable, "1.0.0", "Upload-Length", "3", "Upload-Metadata", "filename YQ=="}},
		{"another size of a file that is there", "POST", "/v1/uploads", "", 422, []string{resumable, "1.0.0", "Upload-Length", "3", "Upload-Metadata", metadataOf(empty)}},
		{"another type", "PATCH", at, "application/json", 415, []string{resumable, "1.0.0", "Upload-Offset", "0"}},
		{"no offset", "PATCH", at, "application/offset+octet-stream", 400, []string{resumable, "1.0.0"}},
		{"a signed offset", "PATCH", at, "application/offset+octet-stream", 400, []string{resumable, "1.0.0", "Upload-Offset", "+0"}},
		{"too many bytes", "PATCH", at, "application/offset+octet-stream", 413, []string{resumable, "1.0.0", "Upload-Offset", "0"}},
		{"no such upload", "HEAD", strings.Replace(at, "-3", "-4", 1), "", 404, []string{resumable, "1.0.0"}},
		{"no name of one", "HEAD", "/v1/uploads/none", "", 404, []string{resumable, "1.0.0"}},
		{"end of none", "DELETE", strings.Replace(at, "-3", "-4", 1), "", 404, []string{resumable, "1.0.0"}},
	} {
		w = ask(s.Server, c.method, c.path, c.kind, "abcd", c.headers...)
		if w.Code != c.status || w.Header().Get(resumable) != "1.0.0" {
			t.Errorf("%s: %d %v %s, want %d", c.what, w.Code, w.Header(), w.Body, c.status)
		}
		if c.status == 503 && w.Header().Get("Retry-After") != "60" || c.status == 412 && w.Header().Get("Tus-Version") != "1.0.0" {
			t.Errorf("%s: %v", c.what, w.Header())
		}
	}
	if w = s.head(at); w.Code != 200 || offsetOf(t, w.Header()) != 0 {
		t.Errorf("after all of that: %d %v", w.Code, w.Header())
	}
}

// TestUploadsOfUsersAreApart: nobody resumes, reads or learns of another one's.
func TestUploadsOfUsersAreApart(t *testing.T) {
	u := newUsers(t)
	kept := u.fake.keepFiles(t, t.TempDir(), 1<<20)
	u.Server = New(Config{Access: u.store, Uploads: kept}, u.fake, prometheus.NewRegistry(), zerolog.Nop())
	b := files.BlobOf([]byte("alice's"))
	sum := b.Hash.String()
	w := u.as("alice", "POST", "/v1/uploads", "", resumable, "1.0.0", "Upload-Length", "7", "Upload-Metadata", metadataOf(b))
	at := w.Header().Get("Location")
	if w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u.refused("bob's look", u.as("bob", "DELETE", at, "", resumable, "1.0.0"), 404, "not-found")
	w = u.as("alice", "PATCH", at, "alice's", resumable, "1.0.0", "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
	if w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	missing := func(who string) string {
		return u.as(who, "POST", "/v1/blobs/missing", `{"sha256":["`+sum+`"]}`).Body.String()
	}
	if got := missing("alice"); !strings.Contains(got, `"missing":[]`) {
		t.Error(got)
	}
	if got := missing("bob"); !strings.Contains(got, sum) {
		t.Error(got)
	}
	u.refused("bob's look", u.as("bob", "GET", "/v1/blobs/"+sum, ""), 404, "unknown-blob")
	if w = u.as("bob", "PUT", "/v1/blobs/"+sum, "alice's"); w.Code != 201 {
		t.Errorf("bob sends it, too: %d %s", w.Code, w.Body)
	}
	if w = askAsPeer(u.Server, "GET", "/v1/blobs/"+sum); w.Code != 403 {
		t.Errorf("another site: %d %s", w.Code, w.Body)
	}
	if w = ask(u.Server, "GET", "/v1/blobs/"+sum, "", ""); w.Code != 401 {
		t.Errorf("nobody: %d %s", w.Code, w.Body)
	}
}

// TestErrorsOfFilesSayMore than the broker's wider words in which they stand.
func TestErrorsOfFilesSayMore(t *testing.T) {
	for want, err := range map[string]error{
		"store-full":   fmt.Errorf("%w: %w", node.ErrStorageFull, store.ErrFull),
		"unknown-blob": fmt.Errorf("%w: %w", node.ErrNotFound, store.ErrUnknown),
		"store-busy":   fmt.Errorf("%w: %w", node.ErrNotReady, store.ErrBusy),
		"results-gone": fmt.Errorf("%w: %w", node.ErrResultsGone, store.ErrDamaged),
	} {
		if p := problem.Of(err); p.Type != wire.ProblemPrefix+want {
			t.Errorf("%s, want %s", p.Type, want)
		}
	}
	for want, err := range map[string]*node.InputError{
		"unknown-blob": {Field: "inputs.3.sha256", Reason: "is not here", Missing: true},
		"invalid-job":  {Field: "inputs.3.path", Reason: "paths overlap"}, // to send it again would not help
	} {
		p := problem.Of(fmt.Errorf("submit: %w", err))
		if p.Status != 422 || p.Type != wire.ProblemPrefix+want || p.Field != err.Field {
			t.Errorf("%+v", p)
		}
	}
}

// TestBrokerWithoutFiles says so.
func TestBrokerWithoutFiles(t *testing.T) {
	s := newServer(newFake("site-1"))
	b := files.BlobOf([]byte("x"))
	for _, w := range []*httptest.ResponseRecorder{
		ask(s, "PUT", "/v1/blobs/"+b.Hash.String(), "", "x"), ask(s, "GET", "/v1/blobs/"+b.Hash.String(), "", ""),
		ask(s, "POST", "/v1/blobs/missing", js, `{"sha256":["`+b.Hash.String()+`"]}`),
		ask(s, "POST", "/v1/uploads", "", "", resumable, "1.0.0", "Upload-Length", "1", "Upload-Metadata", metadataOf(b)),
	} {
		if w.Code != 503 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":files-unavailable") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// TestPutBlob: new, there, wrong, too large; and it is the same bytes that come back.
func TestPutBlob(t *testing.T) {
	s := newSite(t)
	content := randomBytes(files.PieceBytes)
	at := "/v1/blobs/" + files.HashOf(content).String()
	for _, want := range []int{201, 200} {
		if w := ask(s.Server, "PUT", at, "application/octet-stream", string(content)); w.Code != want || !strings.Contains(w.Body.String(), `"size":8388608`) {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
	if w := ask(s.Server, "GET", at, "", ""); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), content) {
		t.Errorf("%d", w.Code)
	}
	for _, c := range []struct {
		path, body, name string
		status           int
	}{
		{at, "other", "wrong-hash", 422},
		{at, string(content) + "x", "too-large", 413},
		{"/v1/blobs/" + strings.ToUpper(at[10:]), "x", "invalid-parameter", 400},
		{"/v1/blobs/xyz", "x", "invalid-parameter", 400},
	} {
		w := ask(s.Server, "PUT", c.path, "", c.body)
		if w.Code != c.status || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":"+c.name) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
	if use := s.fake.store.Usage(store.Own); use.Blobs != 1 {
		t.Errorf("%+v", use)
	}
	for _, body := range []string{`{"sha256":[]}`, `{"sha256":["xyz"]}`, `{"sha256":["` + strings.Repeat(`a","`, 1000) + `a"]}`} {
		if w := ask(s.Server, "POST", "/v1/blobs/missing", js, body); w.Code != 422 {
			t.Errorf("%.30s: %d %s", body, w.Code, w.Body)
		}
	}
}
