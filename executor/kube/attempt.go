package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// work is an attempt as the handler knows it.
type work struct {
	attempts.Attempt
	job   string // the Job's name
	image string // in full
	dir   string
	lease

	placed  chan struct{} // closed when a node has taken the pod
	running chan struct{} // closed when it has begun, or ended
	gone    chan struct{} // closed with declined
	cleaned chan struct{} // see isCleaned

	// The rest is guarded by workSet.mu.

	since time.Time // of the create, by the wall clock; over restarts
	// made: the API server has said so. seen: the watch has shown the Job.
	made, seen bool
	adopted    bool // from an earlier life: nothing creates it any more
	deciding   bool // Start waits for where it goes
	declined   bool // Invariant: only while deciding, and then for good
	kill       *kill
	asked      time.Time // when its pod or Job was last asked to end
	removed    time.Time // when what is left of it was last asked to go
	began      time.Time // seen to run; zero = not yet
	doing      string    // told last
	pod        *podView  // the latest seen; it may be gone
	patience   time.Time // until when an output that cannot be had is asked for
	// what the API server said last when it did not say whether the Job was made, or its pod let go
	unclear string
	let     string // the pod that was let go, or is being: see gate; "" = none
}

// kept is an attempt's result, as it is in its folder.
type kept struct {
	attempts.End
	NoOutput  string `json:"no_output,omitempty"`
	Forgotten bool   `json:"forgotten,omitempty"`
}

func (h *Handler) newWork(a attempts.Attempt) *work {
	return &work{
		Attempt: a, job: jobName(h.id, a.Task.ID), dir: h.folders.Of(a.Name), since: time.Now(),
		placed: make(chan struct{}), running: make(chan struct{}), gone: make(chan struct{}),
		cleaned: make(chan struct{}),
	}
}

// isCleaned is closed when its Job is gone, or going.
func (w *work) isCleaned() <-chan struct{} { return w.cleaned }

// close1 closes a channel once. REQUIRES: workSet.mu held.
func close1(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// Times of looking again, when no watch would say.
const (
	unseen  = 5 * time.Second // a Job that was made and is not shown
	askEach = 30 * time.Second
)

// sync compares one Job with what is wanted of it, and does the difference. It is
// called for one name at a time, whenever something may have changed. again: in
// how long to look again, 0 = when told.
func (h *Handler) sync(ctx context.Context, job string) (again time.Duration, err error) {
	h.works.mu.Lock()
	w := h.works.byJob[job]
	h.works.mu.Unlock()
	if !h.view.isSynced() {
		return 0, nil // everything is looked at then
	}
	v, pod := h.view.jobs.get(h.api.namespace+"/"+job), h.view.podOf(job)
	if w == nil || h.works.isEnded(w) {
		return h.cleanUp(ctx, w, v, pod)
	}
	return h.reconcileAttempt(ctx, w, v, pod)
}

// cleanUp removes what is left of an attempt that has ended, or, with w nil, that
// nobody knows.
func (h *Handler) cleanUp(ctx context.Context, w *work, v *jobView, pod *podView) (time.Duration, error) {
	var remove func() error
	switch {
	case v != nil && !v.deleting:
		remove = func() error { return h.api.removeJob(ctx, v.name) }
	case v == nil && pod != nil && !pod.deleting && !pod.over: // Kubernetes would do it, some time
		remove = func() error { return h.api.removePod(ctx, pod.name) }
	}
	if remove != nil && w != nil && h.wasAsked(w) {
		return askEach, nil // the watch is behind
	}
	if remove != nil {
		if err := h.keepEnd(w); err != nil {
			return 0, err
		}
		if err := h.reach.answered(ignoreMissing(remove())); err != nil {
			return 0, err
		}
	}
	if w != nil {
		h.works.mu.Lock()
		defer h.works.mu.Unlock()
		w.removed = time.Now()
		close1(w.cleaned)
	}
	return 0, nil
}

// wasAsked: the Job of an ended attempt was asked to go a moment ago.
func (h *Handler) wasAsked(w *work) bool {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	return time.Since(w.removed) < askEach
}

// keepEnd has an attempt's end and output on the disk. Until then Kubernetes knows
// them, also after a power failure here, so nobody waits for that: workers do it side by
// side, and a filesystem's journal takes what comes together together.
func (h *Handler) keepEnd(w *work) error {
	if w == nil || h.works.attempts.EndOf(w) == nil {
		return nil
	}
	if err := h.noteEnd(w); err != nil {
		return fmt.Errorf("note the end of %s: %w", w.Name, err)
	}
	for _, name := range []string{endFile, attempts.Streams[0], attempts.Streams[1], "."} {
		if err := attempts.Sync(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("sync the end of %s: %w", w.Name, err)
		}
	}
	return nil
}

// noteEnd writes an end that could not be written when it came, as on a full disk.
func (h *Handler) noteEnd(w *work) error {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	if _, err := os.Stat(filepath.Join(w.dir, endFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := writeFile(w.dir, endFile, kept{End: *w.Ended, NoOutput: w.NoOutput, Forgotten: w.Forgotten})
	if errors.Is(err, os.ErrNotExist) {
		return nil // its folder is gone: nobody keeps it any more
	}
	return err
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// endAttempt ends an attempt, which has written so many bytes. Its result is written
// before it is told.
func (h *Handler) endAttempt(w *work, r executor.Result, out [2]int64) error {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	if w.Ended != nil || w.declined {
		return nil
	}
	r, wait := h.leases.certain(w, r)
	if wait > 0 {
		h.works.queue.AddAfter(w.job, wait)
		return nil
	}
	nothingRan := w.began.IsZero() && r.Started.IsZero() && r.Cause != executor.Vanished && w.run == ""
	if w.deciding && w.kill != nil && w.kill.decline && nothingRan {
		w.declined = true // Start says so, and nobody else
		close(w.gone)
		return nil
	}
	e := attempts.End{Result: r, At: time.Now(), Out: out}
	if err := writeFile(w.dir, endFile, kept{End: e, NoOutput: w.NoOutput}); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("result not written; it is kept in memory, and its Job until it is")
	}
	if w.began.IsZero() && !r.Started.IsZero() {
		h.works.attempts.Events.Put(executor.Event{ID: w.Task.ID, Started: true})
	}
	h.offer.release(w)
	w.pod = nil
	close1(w.placed)
	close1(w.running)
	h.works.attempts.Settle(w, &e)
	h.works.queue.Add(w.job) // its Job is to go
	return nil
}

// Files of an attempt's folder.
const (
	taskFile  = "task"
	letFile   = "let"
	beganFile = "began"
	endFile   = "end"
)

// drop forgets an attempt that was never accepted. A Job of it that comes to be all
// the same is nobody's then, and is removed.
func (h *Handler) drop(w *work) {
	h.works.mu.Lock()
	h.offer.release(w)
	delete(h.works.byJob, w.job)
	h.works.mu.Unlock()
	if err := watchdog.RemoveTree(w.dir); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("the folder of an attempt that did not start cannot be removed")
	}
	h.works.queue.Add(w.job)
}
