package local

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/executor/books"
)

// evict drops the last trace of an attempt.
func (h *Handler) evict(k books.Kept) {
	if k.Bytes > 0 {
		for i := range books.Streams {
			_ = os.Remove(logPath(h.cfg.Dir, k.Name, i))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.attempts.Get(k.Name)
	if w == nil {
		return
	}
	h.attempts.Drop(k.Name)
	w.slot.refs--
	h.dropIfUnused(w.slot)
}

// dropIfUnused deletes a dead slot that no attempt needs. REQUIRES: h.mu held.
func (h *Handler) dropIfUnused(s *slot) {
	if !s.dead {
		return
	}
	delete(h.slots, s.name)
	if s.refs == 0 {
		_ = os.RemoveAll(s.dir)
	}
}

// dropStrayLogs deletes logs of attempts that no journal knows: a crash came
// between two steps of eviction. REQUIRES: h.mu held.
func (h *Handler) dropStrayLogs() {
	entries, err := os.ReadDir(filepath.Join(h.cfg.Dir, "logs"))
	if err != nil {
		return
	}
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".stdout"), ".stderr")
		if h.attempts.Get(name) == nil {
			_ = os.Remove(filepath.Join(h.cfg.Dir, "logs", e.Name()))
		}
	}
}
