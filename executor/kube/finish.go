package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// finisher writes and tells the ends of attempts, and removes what is left of them in the
// cluster.
type finisher struct {
	api    *api
	log    zerolog.Logger
	works  *workSet
	leases *leases
	offer  *offer
	reach  *reach
}

// cleanUp removes what is left of an attempt that has ended, or, with w nil, that
// nobody knows.
func (f *finisher) cleanUp(ctx context.Context, w *work, v *jobView, pod *podView) (time.Duration, error) {
	var remove func() error
	switch {
	case v != nil && !v.deleting:
		remove = func() error { return f.api.removeJob(ctx, v.name) }
	case v == nil && pod != nil && !pod.deleting && !pod.over: // Kubernetes would do it, some time
		remove = func() error { return f.api.removePod(ctx, pod.name) }
	}
	if remove != nil && w != nil && f.wasAsked(w) {
		return askEach, nil // the watch is behind
	}
	if remove != nil {
		if err := f.keepEnd(w); err != nil {
			return 0, err
		}
		if err := f.reach.answered(ignoreMissing(remove())); err != nil {
			return 0, err
		}
	}
	if w != nil {
		f.works.mu.Lock()
		defer f.works.mu.Unlock()
		if w.carried && w.Ended != nil {
			w.dropFiles(w.IsKept() && !w.Forgotten)
		}
		w.removed = time.Now()
		close1(w.cleaned)
	}
	return 0, nil
}

// wasAsked: the Job of an ended attempt was asked to go a moment ago.
func (f *finisher) wasAsked(w *work) bool {
	f.works.mu.Lock()
	defer f.works.mu.Unlock()
	return time.Since(w.removed) < askEach
}

// keepEnd has an attempt's end and output on the disk. Until then Kubernetes knows
// them, also after a power failure here, so nobody waits for that: workers do it side by
// side, and a filesystem's journal takes what comes together together.
func (f *finisher) keepEnd(w *work) error {
	if w == nil || f.works.attempts.EndOf(w) == nil {
		return nil
	}
	if err := f.noteEnd(w); err != nil {
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
func (f *finisher) noteEnd(w *work) error {
	f.works.mu.Lock()
	defer f.works.mu.Unlock()
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
func (f *finisher) endAttempt(w *work, r executor.Result, out [2]int64) error {
	f.works.mu.Lock()
	defer f.works.mu.Unlock()
	if w.Ended != nil || w.declined {
		return nil
	}
	r, wait := f.leases.certain(w, r)
	if wait > 0 {
		f.works.queue.AddAfter(w.job, wait)
		return nil
	}
	r = w.withFiles(r)
	nothingRan := w.began.IsZero() && r.Started.IsZero() && r.Cause != executor.Vanished && w.run == ""
	if w.deciding && w.kill != nil && w.kill.decline && nothingRan {
		w.declined = true // Start says so, and nobody else
		close(w.gone)
		return nil
	}
	e := attempts.End{Result: r, At: time.Now(), Out: out}
	if err := writeFile(w.dir, endFile, kept{End: e, NoOutput: w.NoOutput}); err != nil {
		f.log.Warn().Err(err).Str("attempt", w.Name).Msg("result not written; it is kept in memory, and its Job until it is")
	}
	if w.began.IsZero() && !r.Started.IsZero() {
		f.works.attempts.Events.Put(executor.Event{ID: w.Task.ID, Started: true})
	}
	f.offer.release(w)
	w.pod = nil
	close1(w.placed)
	close1(w.running)
	f.works.attempts.Settle(w, &e)
	f.works.queue.Add(w.job) // its Job is to go
	return nil
}

// drop forgets an attempt that was never accepted. A Job of it that comes to be all
// the same is nobody's then, and is removed.
func (f *finisher) drop(w *work) {
	f.works.mu.Lock()
	f.offer.release(w)
	delete(f.works.byJob, w.job)
	f.works.mu.Unlock()
	if err := watchdog.RemoveTree(w.dir); err != nil {
		f.log.Warn().Err(err).Str("attempt", w.Name).Msg("the folder of an attempt that did not start cannot be removed")
	}
	f.works.queue.Add(w.job)
}
