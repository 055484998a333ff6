package carry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// site is a handler with one attempt, and a way to it that is cut now and then.
type site struct {
	t      *testing.T
	secret []byte
	url    string
	list   List
	// every is after how many bytes a connection is cut, 0 = never.
	every atomic.Int64
	cuts  atomic.Int64
	gone  atomic.Bool

	mu   sync.Mutex
	run  string
	left []byte
	done bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, secret: []byte("secret")}
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(cutter{raw, s}, KeyOf(s.secret))
	if err != nil {
		t.Fatal(err)
	}
	const short = 5 * time.Second // of what is no file's
	server := &http.Server{Handler: Handler(s), ConnContext: ConnContext, ReadTimeout: short, WriteTimeout: short}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	s.url = "http://" + raw.Addr().String()
	return s
}

func (s *site) client() *Client { return NewClient(s.url, KeyOf(s.secret).Public(), "a", "token") }

// cutter cuts connections.
type cutter struct {
	net.Listener
	s *site
}

func (c cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &cut{Conn: conn, s: c.s, left: c.s.every.Load()}, nil
}

type cut struct {
	net.Conn
	s    *site
	mu   sync.Mutex
	left int64
}

func (c *cut) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return
	}
	if c.left -= int64(n); c.left <= 0 {
		c.left = 1
		c.s.cuts.Add(1)
		c.Conn.Close()
	}
}

func (c *cut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.count(n)
	return n, err
}

func (c *cut) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.count(n)
	return n, err
}

func (s *site) IsOf(attempt, token string) bool { return attempt == "a" && token == "token" }

func (s *site) Files(string) (List, error) {
	if s.gone.Load() {
		return nil, ErrGone
	}
	return s.list, nil
}

func (s *site) Sent(_, run string) (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Load() {
		return State{}, ErrGone
	}
	if run != s.run {
		return State{}, nil
	}
	return State{int64(len(s.left)), s.done}, nil
}

func (s *site) Receive(_ context.Context, _, run string, from int64, in io.Reader) (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != 0 && (run != s.run || from != int64(len(s.left))) {
		return State{}, errors.New("elsewhere")
	}
	s.run, s.left = run, s.left[:from]
	b, err := io.ReadAll(in)
	s.left = append(s.left, b...)
	if err != nil {
		return State{}, err
	}
	if err = Check(bytes.NewReader(s.left), 1<<30); err != nil {
		return State{}, err
	}
	s.done = true
	return State{int64(len(s.left)), true}, nil
}

// box is a sink that keeps everything.
type box struct {
	files   map[string]string
	order   []string
	exec    []string
	skipped []string
}

func (b *box) File(f executor.OutputFile, r io.Reader) error {
	content, err := io.ReadAll(r)
	b.files[f.Path] = string(content)
	b.order = append(b.order, f.Path)
	if f.Executable {
		b.exec = append(b.exec, f.Path)
	}
	return err
}

func (b *box) Skipped(name, why string) { b.skipped = append(b.skipped, name+": "+why) }

// give gives what was sent.
func (s *site) give(want executor.Outputs) (*box, error) {
	b := &box{files: map[string]string{}}
	open := func() (io.ReadSeekCloser, error) { return memory{bytes.NewReader(s.left)}, nil }
	return b, Give(s.t.Context(), open, want, b)
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func write(t *testing.T, dir, path, content string, mode os.FileMode) {
	t.Helper()
	to := filepath.Join(dir, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, []byte(content), mode)); err != nil {
		t.Fatal(err)
	}
}

// long is content that no cut leaves whole.
var long = strings.Repeat("0123456789abcdef", 20_000)

// TestFilesArrive: all of them, byte by byte, though connections are cut; what an earlier try has left is gone.
func TestFilesArrive(t *testing.T) {
	s, source := newSite(t), t.TempDir()
	write(t, source, "long", long, 0o400)
	files := []executor.File{
		{Path: "in/long", Source: filepath.Join(source, "long")},
		{Path: "in/empty"},
		{Path: "tool ü", Content: []byte("#!"), Executable: true},
		{Path: "in/again", Source: filepath.Join(source, "long")},
	}
	var total int64
	var err error
	if s.list, total, err = ListOf(files); err != nil || total != int64(2*len(long)+2) {
		t.Fatalf("%d bytes, %v", total, err)
	}
	s.every.Store(300_000)
	dir := t.TempDir()
	write(t, dir, "in/earlier", "x", 0o600)
	if err = s.client().Fetch(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want := string(f.Content)
		if f.Source != "" {
			want = long
		}
		got, err := os.ReadFile(filepath.Join(dir, f.Path))
		st, serr := os.Stat(filepath.Join(dir, f.Path))
		if err != nil || serr != nil || string(got) != want || st.Mode().Perm()&0o100 != 0 != f.Executable {
			t.Errorf("%s: %d bytes, %v, %v", f.Path, len(got), st, err)
		}
	}
	if _, err = os.Stat(filepath.Join(dir, "in/earlier")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was there before: %v", err)
	}
	if s.cuts.Load() < 2 {
		t.Errorf("%d cuts: the test shows nothing", s.cuts.Load())
	}
}

// TestStreamsGoOnAnywhere: a list is the same bytes from any place on.
func TestStreamsGoOnAnywhere(t *testing.T) {
	l, _, err := ListOf([]executor.File{{Path: "a", Content: []byte("one")}, {Path: "b"}, {Path: "c", Content: []byte("three")}})
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err = l.WriteFrom(t.Context(), &whole, 0); err != nil {
		t.Fatal(err)
	}
	for from := range whole.Len() + 2 {
		var rest bytes.Buffer
		if err = l.WriteFrom(t.Context(), &rest, int64(from)); err != nil {
			t.Fatal(err)
		}
		if want := whole.Bytes()[min(from, whole.Len()):]; !bytes.Equal(rest.Bytes(), want) {
			t.Errorf("from %d: %q, want %q", from, rest.Bytes(), want)
		}
	}
}

// TestFilesComeBack: what a task has left arrives once, though connections are cut; what cannot travel is told.
func TestFilesComeBack(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	write(t, dir, "out/a", long, 0o600)
	write(t, dir, "out/b", "b", 0o700)
	write(t, dir, "other", "not wanted", 0o600)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out/link")); err != nil {
		t.Fatal(err)
	}
	want := executor.Outputs{Paths: []string{"out/"}}
	s.every.Store(150_000)
	if err := s.client().Send(t.Context(), "r", dir, want); err != nil {
		t.Fatal(err)
	}
	if s.cuts.Load() < 2 {
		t.Errorf("%d cuts: the test shows nothing", s.cuts.Load())
	}
	b, err := s.give(want)
	if err != nil || !slices.Equal(b.order, []string{"out/a", "out/b"}) || b.files["out/a"] != long || b.files["out/b"] != "b" ||
		!slices.Equal(b.exec, []string{"out/b"}) || len(b.skipped) != 1 || !strings.Contains(b.skipped[0], "out/link") {
		t.Errorf("got %v, %v, skipped %v, %v", b.order, b.exec, b.skipped, err)
	}
	for _, bound := range []executor.Outputs{{Paths: want.Paths, MaxFiles: 1}, {Paths: want.Paths, MaxBytes: 10}} {
		b, err = s.give(bound)
		if _, ok := errors.AsType[*executor.OutputBoundError](err); !ok || len(b.order) > 0 {
			t.Errorf("%+v: gave %v, %v", bound, b.order, err)
		}
	}
	if b, err = s.give(executor.Outputs{Paths: []string{"out/b"}}); err != nil || !slices.Equal(b.order, []string{"out/b"}) {
		t.Errorf("some of them: %v, %v", b.order, err)
	}
}

// TestFaultsComeBack: why there are no files is told as if the sink were in the pod.
func TestFaultsComeBack(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "12345", 0o600)
	for _, c := range []struct {
		want executor.Outputs
		is   func(error) bool
	}{
		{executor.Outputs{Paths: []string{"a", "none"}}, func(err error) bool {
			e, ok := errors.AsType[*executor.MissingOutputError](err)
			return ok && e.Glob == "none"
		}},
		{executor.Outputs{Paths: []string{"a"}, MaxBytes: 4}, func(err error) bool {
			e, ok := errors.AsType[*executor.OutputBoundError](err)
			return ok && e.What == "bytes" && e.Most == 4
		}},
	} {
		s := newSite(t)
		if err := s.client().Send(t.Context(), "r", dir, c.want); err != nil {
			t.Fatal(err)
		}
		if b, err := s.give(c.want); !c.is(err) || len(b.order) > 0 {
			t.Errorf("%+v: gave %v, %v", c.want, b.order, err)
		}
		c.want.Paths, c.want.Optional = nil, c.want.Paths
		if b, err := s.give(c.want); c.want.MaxBytes == 0 && (err != nil || !slices.Equal(b.order, []string{"a"})) {
			t.Errorf("%+v: gave %v, %v", c.want, b.order, err)
		}
	}
	s := newSite(t)
	if err := s.client().Send(t.Context(), "r", filepath.Join(dir, "gone"), executor.Outputs{Paths: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.give(executor.Outputs{Paths: []string{"a"}}); !errors.Is(err, executor.ErrUnreadable) {
		t.Errorf("a folder that is gone: %v", err)
	}
}

// TestNobodyElse gets files or leaves some: not without TLS, nor without the attempt's token; and a pod tells nobody
// who has not the handler's key.
func TestNobodyElse(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	s.list, _, _ = ListOf([]executor.File{{Path: "a", Content: []byte("private")}})
	for _, what := range []string{"in", "out"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+Root+what+"?attempt=a&run=r&from=0", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer token")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s without TLS: %s", what, res.Status)
		}
	}
	key := KeyOf(s.secret).Public()
	for name, c := range map[string]*Client{
		"another attempt": NewClient(s.url, key, "b", "token"), "another token": NewClient(s.url, key, "a", "other"),
	} {
		if err := c.Fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s fetches: %v", name, err)
		}
		err := c.Send(t.Context(), "r", dir, executor.Outputs{Optional: []string{"./"}})
		if err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s sends: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := NewClient(s.url, KeyOf([]byte("other")).Public(), "a", "token").Fetch(ctx, dir)
	if err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("another handler: %v", err)
	}
	if s.run != "" {
		t.Error("something was received")
	}
	s.gone.Store(true)
	if err = s.client().Send(t.Context(), "r", dir, executor.Outputs{Optional: []string{"./"}}); err == nil {
		t.Error("an attempt that is over: it was sent")
	}
}

// TestGarbledStreams are refused, whoever has the attempt's token.
func TestGarbledStreams(t *testing.T) {
	const end = `{"end":true}` + "\n"
	file := func(path string, size int) string {
		return fmt.Sprintf(`{"file":{"Path":%q,"Size":%d}}`+"\n", path, size)
	}
	for name, text := range map[string]string{
		"nothing": "", "no end": file("a", 1) + "x", "cut": file("a", 5) + "x", "out of the folder": file("../a", 0) + end,
		"absolute": file("/a", 0) + end, "twice": file("a", 0) + file("a", 0) + end, "no order": file("b", 0) + file("a", 0) + end,
		"less than nothing": file("a", -1) + end, "too much": file("a", 101) + strings.Repeat("x", 101) + end,
		"wraps": file("a", 1<<62) + end, "more": end + "x", "no frame": "x\n" + end, "a long line": strings.Repeat("x", maxLine+1),
	} {
		if err := Check(strings.NewReader(text), 100); !errors.Is(err, ErrGarbled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Check(strings.NewReader(file("a", 1)+"x"+file("b", 0)+end), 100); err != nil {
		t.Error(err)
	}
}

// FuzzStreams: what was written by anybody is refused, or read within its bounds.
func FuzzStreams(f *testing.F) {
	f.Add(`{"file":{"Path":"a","Size":1}}` + "\nx" + `{"skipped":{"name":"/w==","why":"w"}}` + "\n" + `{"end":true}` + "\n")
	f.Add(`{"missing":{"Glob":"a"}}` + "\n" + `{"fault":{"bound":{"What":"files"}}}` + "\n" + `{"end":true}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if Check(strings.NewReader(text), 1<<20) != nil {
			return
		}
		s := &site{t: t, left: []byte(text)}
		b, err := s.give(executor.Outputs{Optional: []string{"./"}})
		if err == nil && !slices.IsSortedFunc(b.order, executor.ComparePaths) {
			t.Errorf("gave %v", b.order)
		}
	})
}
