package engine

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// serve answers like an engine would, or would not.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	c, err := New("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRefusals: the engine's own reason, in one bounded line, and of which kind.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("no ", 1000)
	for _, c := range []struct {
		status     int
		body, want string
		kind       error
	}{
		{404, `{"message":"No such image:\n x"}`, "No such image: x", ErrNotFound},
		{409, `{"message":"name in use"}`, "name in use", ErrConflict},
		{500, "<html>\nbroken\x00", "<html> broken\x00", ErrRefused},
		{400, "", "no reason given", ErrRefused},
		{500, `{"message":"` + long + `"}`, "no no", ErrRefused},
	} {
		e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			w.Write([]byte(c.body))
		})
		_, err := e.Inspect(t.Context(), "x")
		said, ok := errors.AsType[*Refusal](err)
		if !ok || !errors.Is(err, c.kind) || !strings.HasPrefix(said.Message, c.want) ||
			len(said.Message) > maxMessage+10 || said.Status != c.status {
			t.Errorf("%d %.40s: got %v", c.status, c.body, err)
		}
	}
}

// TestAway: no engine, or one that answers nonsense, is away: what was asked may
// have happened.
func TestAway(t *testing.T) {
	c, err := New("unix://" + filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Info(t.Context()); !errors.Is(err, ErrAway) || strings.Contains(err.Error(), "http://") {
		t.Errorf("nobody there: %v", err)
	}
	for _, body := range []string{"", "{", "[1,2", `"text"`} {
		e := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) })
		if _, err = e.Inspect(t.Context(), "x"); !errors.Is(err, ErrAway) {
			t.Errorf("%q: %v", body, err)
		}
		if err = e.Events(t.Context(), "a=b", func() {}, func(Event) {}); !errors.Is(err, ErrAway) {
			t.Errorf("events %q: %v", body, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "tcp://127.0.0.1:2375", "unix://relative", "/var/run/docker.sock", "unix:/x"} {
		if _, err := New(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestPull sums up what engines say of layers, and gives a registry's words.
func TestPull(t *testing.T) {
	answer := `{"status":"Pulling from x","id":"latest"}
{"status":"Pulling fs layer","id":"a"}
{"status":"Pulling fs layer","id":"b"}
{"status":"Downloading","id":"a","progressDetail":{"current":10,"total":100}}
{"status":"Downloading","id":"a","progressDetail":{"current":60,"total":100}}
{"status":"Downloading","id":"b","progressDetail":{"current":5,"total":100}}
{"status":"Download complete","id":"a","progressDetail":{}}
{"status":"Pull complete","id":"a","progressDetail":{}}
`
	tail := ""
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("fromImage") != "docker.io/library/x:1" {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Write([]byte(answer + tail))
	})
	var last Progress
	if err := e.Pull(t.Context(), "docker.io/library/x:1", func(p Progress) { last = p }); err != nil {
		t.Fatal(err)
	}
	if last.Layers != 2 || last.Done != 1 || last.Fetched != 65 || last.Bytes != 200 {
		t.Errorf("got %+v", last)
	}
	tail = `{"errorDetail":{"message":"x"},"error":"manifest unknown:\n nothing there"}`
	err := e.Pull(t.Context(), "docker.io/library/x:1", func(Progress) {})
	if said, ok := errors.AsType[*Refusal](err); !ok || said.Message != "manifest unknown: nothing there" {
		t.Errorf("got %v", err)
	}
	tail = "{"
	if err = e.Pull(t.Context(), "docker.io/library/x:1", func(Progress) {}); !errors.Is(err, ErrAway) {
		t.Errorf("cut short: got %v", err)
	}
}
