package imports

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// memory is a store in memory.
type memory struct {
	mu   sync.Mutex
	have map[string][]byte // by user and hash
	full error
}

func (s *memory) Put(_ context.Context, user string, r io.Reader, limit int64) (files.Blob, error) {
	if s.full != nil {
		return files.Blob{}, s.full
	}
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return files.Blob{}, err
	}
	if int64(len(content)) > limit {
		return files.Blob{}, errTooLarge
	}
	b := files.BlobOf(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.have[user+b.Hash.String()] = content
	return b, nil
}

var errTooLarge = errors.New("too large")

func (s *memory) Find(user string, h files.Hash) (files.Blob, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, there := s.have[user+h.String()]
	return files.BlobOf(content), there
}

// rig is a host that serves by https, and imports that may ask it.
type rig struct {
	t     *testing.T
	host  *httptest.Server
	store *memory
	asked chan string // paths
	*Imports
}

func newRig(t *testing.T, cfg Config, serve http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, store: &memory{have: map[string][]byte{}}, asked: make(chan string, 1000)}
	r.host = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked <- q.URL.Path
		serve(w, q)
	}))
	t.Cleanup(r.host.Close)
	if cfg.Hosts == nil {
		cfg.Hosts = []string{r.host.Listener.Addr().String()}
	}
	cfg.Store, cfg.Roots = r.store, x509.NewCertPool()
	cfg.Roots.AddCert(r.host.Certificate())
	r.Imports = New(cfg)
	t.Cleanup(r.Imports.Close)
	return r
}

// end imports a path until that has ended.
func (r *rig) end(path string, want files.Hash) (State, error) {
	r.t.Helper()
	for {
		s, err := r.Import("alice", r.host.URL+path, want)
		if s.Done || err != nil {
			return s, err
		}
		r.quiet()
	}
}

// quiet waits for the fetches that go on.
func (r *rig) quiet() { r.under.Wait() }

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

// TestImport begins, tells how far it is, and is remembered; another user's is another one.
func TestImport(t *testing.T) {
	r := newRig(t, Config{Private: true}, text("genome"))
	want := files.BlobOf([]byte("genome"))
	s, err := r.Import("alice", r.host.URL+"/ref", want.Hash)
	if err != nil || s.Done {
		t.Fatalf("%+v %v", s, err)
	}
	for range 3 {
		if s, err = r.end("/ref", want.Hash); err != nil || s.Blob != want || s.Received != 6 || s.Size != 6 {
			t.Fatalf("%+v %v", s, err)
		}
	}
	if s, err = r.end("/ref", files.Hash{}); err != nil || s.Blob != want {
		t.Errorf("whatever comes: %+v %v", s, err)
	}
	if len(r.asked) != 2 {
		t.Errorf("the host was asked %d times, not twice", len(r.asked))
	}
	if s, err = r.Import("bob", r.host.URL+"/ref", want.Hash); err != nil || s.Done {
		t.Errorf("bob: %+v %v", s, err)
	}
	r.quiet()
	delete(r.store.have, "alice"+want.Hash.String()) // collected
	if s, err = r.Import("alice", r.host.URL+"/ref", files.Hash{}); err != nil || s.Done {
		t.Errorf("gone from the store: %+v %v", s, err)
	}
	if s, err = r.end("/ref", files.Hash{}); err != nil || !s.Done {
		t.Errorf("again: %+v %v", s, err)
	}
}

// TestRefusedURLs are never asked for, and the refusal says why.
func TestRefusedURLs(t *testing.T) {
	r := newRig(t, Config{Hosts: []string{"data.example.org", "*.pub.example.org", "odd.example.org:8443", "[2606:4700::1]"}}, text("x"))
	for url, why := range map[string]string{
		"http://data.example.org/a":                               "only https",
		"ftp://data.example.org/a":                                "only https",
		"file:///etc/passwd":                                      "only https",
		"s3://bucket/key":                                         "data.fetch_from",
		"/etc/passwd":                                             "only https",
		"https://u:p@data.example.org/a":                          "credentials",
		"https://example.org/a":                                   "data.fetch_from",
		"https://data.example.org.evil.org/":                      "data.fetch_from",
		"https://data.example.org./a":                             "data.fetch_from",
		"https://data.example.org:8443/a":                         "data.fetch_from",
		"https://odd.example.org/a":                               "data.fetch_from",
		"https://pub.example.org/a":                               "data.fetch_from",
		"https://evilpub.example.org/a":                           "data.fetch_from",
		"https://127.0.0.1/a":                                     "data.fetch_from",
		"https://%zz":                                             "no URL",
		"https://data.example.org/" + strings.Repeat("x", MaxURL): "2048 bytes",
	} {
		if _, err := r.Import("alice", url, files.Hash{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60s: %v, want %s", url, err, why)
		}
	}
	for _, url := range []string{
		"https://data.example.org/a?b=c#d", "https://DATA.example.ORG:443/", "https://a.b.pub.example.org/", "https://odd.example.org:8443/",
		"https://[2606:4700::1]/",
	} {
		if _, err := r.check(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	none := New(Config{Store: r.store})
	defer none.Close()
	if _, err := none.Import("alice", "https://data.example.org/a", files.Hash{}); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), "data.fetch_from") {
		t.Errorf("without hosts: %v", err)
	}
}

// TestPrivateAddressesAreNotAsked, whatever name leads there.
func TestPrivateAddressesAreNotAsked(t *testing.T) {
	r := newRig(t, Config{}, text("secret"))
	if _, err := r.end("/", files.Hash{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "data.fetch_private") {
		t.Errorf("%v", err)
	}
	port := r.host.URL[strings.LastIndexByte(r.host.URL, ':'):]
	r.cfg.Hosts = []string{"localhost" + port}
	r.host.URL = "https://localhost" + port
	if _, err := r.end("/", files.Hash{}); !errors.Is(err, ErrRefused) {
		t.Errorf("by name: %v", err)
	}
	if len(r.asked) != 0 {
		t.Error("the host was asked")
	}
}

// TestRedirects are followed within bounds, each by the same rules.
func TestRedirects(t *testing.T) {
	r := newRig(t, Config{Private: true}, func(w http.ResponseWriter, q *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(q.URL.Path, "/hops/%d", &n); {
		case err == nil && n > 0:
			http.Redirect(w, q, fmt.Sprintf("/hops/%d", n-1), http.StatusFound)
		case err == nil:
			_, _ = io.WriteString(w, "there")
		case q.URL.Path == "/plain":
			http.Redirect(w, q, "http://"+q.Host+"/hops/0", http.StatusFound)
		default:
			http.Redirect(w, q, "https://169.254.169.254/latest", http.StatusFound)
		}
	})
	if s, err := r.end("/hops/5", files.Hash{}); err != nil || s.Blob != files.BlobOf([]byte("there")) {
		t.Errorf("%+v %v", s, err)
	}
	for path, why := range map[string]string{"/hops/6": "5 times", "/plain": "only https", "/away": "data.fetch_from"} {
		if _, err := r.end(path, files.Hash{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestBadAnswers are no file: nothing of them is kept, and asking again tries again.
func TestBadAnswers(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 200)
	r := newRig(t, Config{Private: true, MaxBytes: 100}, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/missing":
			http.NotFound(w, q)
		case "/said":
			_, _ = w.Write(long)
		case "/unsaid":
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(long)
		case "/cut":
			w.Header().Set("Content-Length", "50")
			_, _ = w.Write(long[:20])
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, "other")
		}
	})
	for path, want := range map[string]error{
		"/missing": ErrFailed, "/said": ErrRefused, "/unsaid": errTooLarge, "/cut": ErrFailed, "/hash": ErrRefused,
	} {
		hash := files.Hash{}
		if path == "/hash" {
			hash = files.HashOf([]byte("this"))
		}
		if s, err := r.end(path, hash); !errors.Is(err, want) {
			t.Errorf("%s: %+v %v", path, s, err)
		}
	}
	if len(r.store.have) != 0 {
		t.Errorf("kept: %v", r.store.have)
	}
	r.mu.Lock()
	r.expire(time.Now().Add(failedRemembered))
	left := len(r.all)
	r.mu.Unlock()
	if left != 0 {
		t.Errorf("%d users' failures are remembered", left)
	}
}

// TestStalled: a host that brings too little is left.
func TestStalled(t *testing.T) {
	stay := make(chan struct{})
	r := newRig(t, Config{Private: true, Stall: 20 * time.Millisecond}, func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "a little")
		_ = http.NewResponseController(w).Flush()
		<-stay
	})
	defer close(stay)
	if _, err := r.end("/", files.Hash{}); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "too little came") {
		t.Error(err)
	}
}

// TestBounds: of fetches at a time, of all and of each; who waits begins by asking again.
func TestBounds(t *testing.T) {
	free := make(chan struct{})
	r := newRig(t, Config{Private: true, AtOnce: 3, AtOnceEach: 2}, func(w http.ResponseWriter, q *http.Request) {
		<-free
		_, _ = io.WriteString(w, q.URL.Path)
	})
	for _, c := range []struct{ user, path string }{{"alice", "/1"}, {"alice", "/2"}, {"alice", "/3"}, {"bob", "/1"}, {"bob", "/2"}} {
		if s, err := r.Import(c.user, r.host.URL+c.path, files.Hash{}); err != nil || s.Done {
			t.Fatalf("%+v %v", s, err)
		}
	}
	for range 3 {
		<-r.asked
	}
	close(free)
	r.quiet()
	if len(r.asked) != 0 {
		t.Errorf("%d more were asked for", len(r.asked))
	}
	if _, err := r.end("/3", files.Hash{}); err != nil {
		t.Error(err)
	}
}

// TestClose ends what goes on.
func TestClose(t *testing.T) {
	began := make(chan struct{})
	r := newRig(t, Config{Private: true}, func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(began)
		<-q.Context().Done()
	})
	if _, err := r.Import("alice", r.host.URL, files.Hash{}); err != nil {
		t.Fatal(err)
	}
	<-began
	r.Close()
	if _, err := r.Import("alice", r.host.URL+"/other", files.Hash{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestNamesMeanNoPrivateAddress: whatever a name server says of a name that is allowed, before or after a redirection,
// an address of this machine or its network is not asked.
func TestNamesMeanNoPrivateAddress(t *testing.T) {
	r := newRig(t, Config{Hosts: []string{"*.example.org", "*.example.org:8443"}}, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "https://inside.example.org/", http.StatusFound)
	})
	for name, addrs := range map[string][]string{
		"loopback": {"127.0.0.1"}, "lan": {"10.1.2.3"}, "link": {"169.254.169.254"}, "six": {"::1"}, "mapped": {"::ffff:127.0.0.1"},
		"both": {"192.168.0.1", "fd00::1"},
	} {
		lookUp(t, r.Imports, addrs...)
		r.host.URL = "https://" + name + ".example.org"
		if _, err := r.end("/", files.Hash{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "data.fetch_private") {
			t.Errorf("%v: %v", addrs, err)
		}
	}
	if len(r.asked) > 0 {
		t.Error("the host was asked")
	}
	// A host that is asked leads to a name that means a private address.
	tr := r.http.Transport.(*http.Transport)
	lookUp(t, r.Imports, "127.0.0.1") // what the name means now
	checked := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "outside.") {
			return (&net.Dialer{}).DialContext(ctx, network, r.host.Listener.Addr().String())
		}
		return checked(ctx, network, addr)
	}
	tr.TLSClientConfig.ServerName = "example.com" // that of the host's certificate
	r.host.URL = "https://outside.example.org"
	if _, err := r.end("/", files.Hash{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("behind a redirection: %v", err)
	}
	if len(r.asked) != 1 {
		t.Errorf("the host was asked %d times", len(r.asked))
	}
}

// lookUp has names mean addresses: as the dialer is told by a name server, one after the other.
func lookUp(t *testing.T, m *Imports, addrs ...string) {
	t.Helper()
	rules := m.rules()
	plain := (&net.Dialer{Control: rules.Control}).DialContext
	tr := m.http.Transport.(*http.Transport)
	tr.DialContext = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		_, port, _ := net.SplitHostPort(addr)
		for _, a := range addrs {
			if conn, err = plain(ctx, network, net.JoinHostPort(a, port)); err == nil {
				break
			}
		}
		return conn, err
	}
}

// TestTrickleIsLeft: a host that goes on, and brings less than the least, is left as one that has stopped.
func TestTrickleIsLeft(t *testing.T) {
	r := newRig(t, Config{Private: true, Stall: 100 * time.Millisecond}, func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			<-time.After(5 * time.Millisecond) // at most 20 KiB within the time
		}
	})
	if s, err := r.end("/", files.Hash{}); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "too little came") {
		t.Errorf("%+v, %v", s, err)
	}
	if len(r.store.have) > 0 {
		t.Error("something is kept")
	}
}

// TestUnknownAuthority: a host whose certificate nobody vouches for, or that is another's, is not believed.
func TestUnknownAuthority(t *testing.T) {
	r := newRig(t, Config{Private: true}, text("x"))
	other := New(Config{Store: r.store, Private: true, Hosts: r.cfg.Hosts, Roots: x509.NewCertPool()})
	defer other.Close()
	if s, err := r.end("/", files.Hash{}); err != nil || !s.Done {
		t.Fatalf("%+v, %v", s, err)
	}
	r.Imports = other
	if _, err := r.end("/x", files.Hash{}); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("%v", err)
	}
}
