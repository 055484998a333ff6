package local

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// kept is a forgotten attempt whose logs stay for a while.
type kept struct {
	name     string
	at       time.Time
	out, err int64
}

// janitor deletes what retention no longer covers, oldest first, beside the
// broker's work.
type janitor struct {
	dir   string
	rules Retention
	evict func(name string)
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu    sync.Mutex
	list  []kept
	bytes int64
}

func startJanitor(dir string, rules Retention, evict func(string)) *janitor {
	j := &janitor{
		dir: dir, rules: rules, evict: evict,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go j.run()
	return j
}

func (j *janitor) add(k kept) {
	j.mu.Lock()
	j.list = append(j.list, k)
	j.bytes += k.out + k.err
	over := j.over(time.Now())
	j.mu.Unlock()
	if over {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
}

// over says that the oldest must go. REQUIRES: j.mu held.
func (j *janitor) over(now time.Time) bool {
	return len(j.list) > 0 && (len(j.list) > j.rules.Count || j.bytes > j.rules.Bytes ||
		now.Sub(j.list[0].at) > j.rules.Age)
}

func (j *janitor) run() {
	defer close(j.done)
	tick := time.NewTicker(min(j.rules.Age, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-j.wake:
		case <-tick.C:
		case <-j.quit:
			return
		}
		for j.dropOldest() {
		}
	}
}

func (j *janitor) dropOldest() bool {
	j.mu.Lock()
	if !j.over(time.Now()) {
		j.mu.Unlock()
		return false
	}
	k := j.list[0]
	j.list = j.list[1:]
	j.bytes -= k.out + k.err
	j.mu.Unlock()
	for i, size := range []int64{k.out, k.err} {
		if size > 0 {
			_ = os.Remove(logPath(j.dir, k.name, i))
		}
	}
	j.evict(k.name)
	return true
}

func (j *janitor) close() {
	close(j.quit)
	<-j.done
}

// keep hands a forgotten attempt to the janitor; the handler still knows its
// name, so that it cannot run again. REQUIRES: h.mu held.
func (h *Handler) keep(w *work) {
	w.forgotten = true
	// What is left of it should be small: there can be thousands.
	id := w.task.ID
	w.task.Command, w.task.Env = nil, nil
	w.task.ID = id
	h.janitor.add(kept{name: w.name, at: w.ended.At, out: w.ended.Out, err: w.ended.Err})
}

// evict drops the last trace of an attempt.
func (h *Handler) evict(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.attempts[name]
	if w == nil {
		return
	}
	delete(h.attempts, name)
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
		if h.attempts[name] == nil {
			_ = os.Remove(filepath.Join(h.cfg.Dir, "logs", e.Name()))
		}
	}
}
