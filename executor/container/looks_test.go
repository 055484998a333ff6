package container

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

const mib = 1 << 20

// layered is a handler with a running attempt of another site, whose engine is what serve answers.
func layered(t *testing.T, serve http.HandlerFunc) (*Handler, *work) {
	t.Helper()
	dir := t.TempDir()
	h := &Handler{
		cfg:    Config{Cores: 1, Keeping: attempts.Keeping{Site: "site-2", Dir: dir}},
		engine: serving(t, serve), calls: t.Context(),
		presence: newPresence(reach{}), attempts: &attempts.Set[*work]{},
	}
	h.template = template{cfg: &h.cfg, home: "x"}
	w := h.newWork(attempts.NewAttempt(executor.Task{
		ID: executor.ID{Job: "site-1.9"}, Owner: "site-1", Image: "localhost/some:1",
	}))
	t.Cleanup(func() { w.abort(nil) })
	w.dir = filepath.Join(dir, "attempt")
	if err := box.Make(w.dir, box.Order{}); err != nil {
		t.Fatal(err)
	}
	return h, w
}

// inspected answers an engine's question of a container with its layer.
func inspected(w http.ResponseWriter, upper string, size int64) {
	var c struct {
		engine.Container
		SizeRw int64
	}
	c.GraphDriver.Data, c.SizeRw = map[string]string{"UpperDir": upper}, size
	_ = json.NewEncoder(w).Encode(c)
}

// TestScratchHoldsWhatIsPutIn: a stranger's task that would be over its scratch by the files that are copied for it is
// declined before anything is done, not charged later; files that are only mounted do not count, nor those of the
// site's own tasks.
func TestScratchHoldsWhatIsPutIn(t *testing.T) {
	h, w := layered(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	h.cfg.Scratch = mib
	large := filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.WriteFile(large, make([]byte, 2*mib), 0o600), os.Chmod(large, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file executor.File
		want error
	}{
		{executor.File{Path: "in", Source: large}, executor.ErrUnfit},
		{executor.File{Path: "in", Content: make([]byte, mib)}, nil},
		{executor.File{Path: "/in", Content: make([]byte, mib+1)}, executor.ErrUnfit},
		{executor.File{Path: "/in", Source: large, Executable: true}, executor.ErrUnfit},
		{executor.File{Path: "/in", Source: large}, nil},
	} {
		w.Task.Files = []executor.File{c.file}
		if err := h.checkScratch(w.Task); !errors.Is(err, c.want) {
			t.Errorf("%s of %q: %v, want %v", c.file.Path, c.file.Source, err, c.want)
		}
	}
	w.Task.Files = []executor.File{{Path: "in", Source: large}}
	w.dir = filepath.Join(h.cfg.Dir, "other")
	if err := h.makeFolder(t.Context(), w); !errors.Is(err, executor.ErrUnfit) || !strings.Contains(err.Error(), "scratch") {
		t.Errorf("it is begun: %v", err)
	}
	if _, err := os.Lstat(w.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	w.Task.Owner = h.cfg.Site
	if err := h.checkScratch(w.Task); err != nil {
		t.Errorf("of the site's own: %v", err)
	}
}

// TestScratchIsLookedAtTwice: one look that finds too much ends nothing, two do.
func TestScratchIsLookedAtTwice(t *testing.T) {
	var sizes atomic.Int64
	var second int64
	h, w := layered(t, func(w http.ResponseWriter, r *http.Request) {
		size := int64(0)
		if r.URL.Query().Has("size") {
			size = 9 * mib
			if sizes.Add(1) == 2 {
				size = second
			}
		}
		inspected(w, "", size)
	})
	stops, err := os.OpenFile(filepath.Join(w.dir, "stops"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stops.Close()
	for _, second = range []int64{mib, 9 * mib} {
		sizes.Store(0)
		h.holdScratch(w, diskuse.Use{Bytes: 8 * mib, Files: diskuse.MaxFiles})
		b := make([]byte, 200)
		n, _ := unix.Read(int(stops.Fd()), b)
		said := string(b[:max(n, 0)])
		told := strings.Contains(said, "over its scratch: more than 8Mi")
		if told != (second > 8*mib) || sizes.Load() != 2 {
			t.Errorf("with %d bytes at the second of %d looks it is told %q", second, sizes.Load(), said)
		}
	}
}

// TestWeighCountsItsOwnDisk: what the engine has elsewhere, or where nobody knows, does not count: its end would make
// no room.
func TestWeighCountsItsOwnDisk(t *testing.T) {
	var upper string
	h, w := layered(t, func(w http.ResponseWriter, _ *http.Request) { inspected(w, upper, 7*mib) })
	near, far := t.TempDir(), "/proc"
	if err := os.WriteFile(filepath.Join(near, "file"), make([]byte, 3*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(near, "absent")
	for _, c := range []struct {
		upper, root string
		want        int64
	}{
		{near, far, 3 * mib},
		{"", near, 7 * mib},
		{absent, near, 7 * mib},
		{far, near, 0},
		{"", far, 0},
		{"", "", 0},
		{absent, absent, 0},
	} {
		upper, h.presence.info.RootDir = c.upper, c.root
		if got := h.weigh(t.Context(), w); got < c.want || got > c.want+mib/2 {
			t.Errorf("layer in %q, engine in %q: %d bytes, want %d", c.upper, c.root, got, c.want)
		}
	}
}

// TestWeighEndsWithItsContext: an engine that does not answer holds up nobody who wants to know it no more.
func TestWeighEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h, w := layered(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	h.presence.info.RootDir = h.cfg.Dir
	if err := os.WriteFile(filepath.Join(box.WorkOf(w.dir), "file"), make([]byte, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.weigh(ctx, w); got < mib || h.calls.Err() != nil {
		t.Errorf("%d bytes", got)
	}
}
