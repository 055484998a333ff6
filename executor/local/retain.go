package local

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// shelf returns what the store of outputs must know.
func (h *Handler) shelf() attempts.Shelf { return attempts.Shelf{Output: h.outputFile, Drop: h.evict} }

// outputFile returns where the output of an ended attempt is.
func (h *Handler) outputFile(k attempts.Kept, stream int) string {
	return logPath(h.cfg.Dir, k.Name, stream)
}

// evict drops the last trace of an attempt.
func (h *Handler) evict(k attempts.Kept) bool {
	for i, size := range k.Out {
		if size > 0 {
			_ = os.Remove(logPath(h.cfg.Dir, k.Name, i))
		}
	}
	if s := h.dropAttempt(k.Name); s != nil {
		h.removeSlot(s)
	}
	return true
}

// dropAttempt forgets an attempt, and returns the slot that nobody needs then.
func (h *Handler) dropAttempt(name string) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.attempts.Get(name)
	if w == nil {
		return nil
	}
	h.attempts.Drop(name)
	w.slot.refs--
	if h.dropIfUnused(w.slot) {
		return w.slot
	}
	return nil
}

// dropIfUnused forgets a dead slot, and reports whether no attempt needs its folder.
// REQUIRES: h.mu held.
func (h *Handler) dropIfUnused(s *slot) bool {
	if !s.dead {
		return false
	}
	delete(h.slots, s.name)
	return s.refs == 0
}

// removeSlot removes a slot's folder, which can hold whatever a task has left.
func (h *Handler) removeSlot(s *slot) {
	if err := watchdog.RemoveTree(s.dir); err != nil {
		h.aside.Put(s.dir, err)
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
