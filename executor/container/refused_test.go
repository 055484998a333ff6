package container

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// serving returns a client of an engine that is what serve answers.
func serving(t *testing.T, serve http.HandlerFunc) *engine.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: serve}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	e, err := engine.New("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// refusing is a handler whose engine starts no container as long as it is given words to refuse it with.
func refusing(t *testing.T) (h *Handler, words *atomic.Value) {
	t.Helper()
	words = new(atomic.Value)
	e := serving(t, func(w http.ResponseWriter, r *http.Request) {
		said, _ := words.Load().(string)
		if said == "" || !strings.HasSuffix(r.URL.Path, "/start") {
			_, _ = w.Write([]byte("{}"))
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": said})
	})
	cfg := Config{Cores: 1, Keeping: attempts.Keeping{Site: "site-2"}, IO: attempts.Bandwidth{WriteBytes: 4}}
	h = &Handler{cfg: cfg, engine: e, calls: t.Context(), presence: newPresence(reach{devices: []string{"/dev/a"}})}
	h.template = template{cfg: &h.cfg, home: "x"}
	h.presence.away = nil
	return h, words
}

// launchOf starts a container for a task of an owner, and returns what the status says of disks then.
func launchOf(h *Handler, owner string) (io string, err error) {
	w := h.newWork(attempts.NewAttempt(executor.Task{ID: executor.ID{Job: "site-1.9"}, Owner: owner}))
	defer w.abort(nil)
	err = h.launch(w, executor.ImageName{}, box.Order{})
	_, io, _ = strings.Cut(h.Status(), "; other sites' tasks have no network")
	return io, err
}

// TestRefusedBoundsAreSaid: where the engine refuses the bounds of disks, the status claims no bound, but says what was
// refused and why, until a container with bounds has started; what it refuses for other reasons, or of others, says
// nothing of that.
func TestRefusedBoundsAreSaid(t *testing.T) {
	h, words := refusing(t)
	const holds, broken = "; another site's container has wbps=4 of disks /dev/a", "write io.max: no such device"
	for _, step := range []struct {
		refusal, owner string
		said           []string
	}{
		{"", "site-1", []string{holds}},
		{"no such mount", "site-1", []string{holds}},
		{broken, "site-2", []string{holds}},
		{broken, "site-1", []string{"wbps=4 of disks /dev/a: ", broken, "declined", "change sandbox.io"}},
		{"", "site-2", []string{broken}},
		{"no such mount", "site-1", []string{broken}},
		{"the requested cgroup controller `io` is not available", "site-1", []string{"controller `io` is not available"}},
		{"stat /dev/a: no such file", "site-1", []string{"stat /dev/a: no such file"}},
		{"", "site-1", []string{holds}},
	} {
		words.Store(step.refusal)
		io, err := launchOf(h, step.owner)
		if (err != nil) != (step.refusal != "") {
			t.Errorf("%+v: %v", step, err)
		}
		for _, want := range step.said {
			if !strings.Contains(io, want) || strings.Contains(io, "\n") {
				t.Errorf("%+v: it says %q", step, io)
			}
		}
	}
}
