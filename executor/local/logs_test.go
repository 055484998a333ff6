package local

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// slotted is an attempt in a slot whose supervisor has already kept its output
// and made the file of the next one, while its end is not known here yet.
func slotted(t *testing.T, output string) (*Handler, *work) {
	t.Helper()
	notices, err := attempts.OpenNotices()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(notices.Close)
	h := &Handler{cfg: Config{Keeping: attempts.Keeping{Dir: t.TempDir()}}, desk: &attempts.Desk{Notices: notices}}
	if h.attempts, err = attempts.NewSet[*work](&h.mu, h.cfg.Keeping, func(attempts.Hold) {}, h.shelf()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.attempts.Close)
	w := &work{limit: 1 << 20, slot: &slot{dir: filepath.Join(h.cfg.Dir, "slot")}}
	w.Name, w.Done = "one", make(chan struct{})
	for path, text := range map[string]string{
		logPath(h.cfg.Dir, w.Name, 0):                  output,
		filepath.Join(w.slot.dir, attempts.Streams[0]): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h, w
}

// TestFollowedWhileItEnds: who opens the output between an attempt's end and the
// news of it gets that attempt's output, and nothing of the next one's.
func TestFollowedWhileItEnds(t *testing.T) {
	for _, follow := range []bool{true, false} {
		h, w := slotted(t, "mine\n")
		r, err := h.openLog(t.Context(), w, 0, follow)
		if err != nil {
			t.Fatal(err)
		}
		h.mu.Lock()
		w.Ended = &attempts.End{Out: [2]int64{5}}
		h.mu.Unlock()
		close(w.Done)
		if err := os.WriteFile(filepath.Join(w.slot.dir, attempts.Streams[0]), []byte("another's output\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || string(text) != "mine\n" {
			t.Errorf("follow %v: read %q, %v", follow, text, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
