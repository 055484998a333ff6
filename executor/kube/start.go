package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Bound implements executor.Bounded. With D the active deadline of the Job and of
// its pod, StartLimit + timeout, and nobody here to help:
//
//	pod let go, by this handler       ≤ Start + ControlLag
//	pod given up if it does not run   ≤ that + D      by the Job's deadline
//	task told to end                  ≤ that + D      by the pod's, which its kubelet counts from its own start
//	dead                              ≤ that + grace + NodeLag
//
// Both deadlines count since a node may be cut off in between. It holds as long as
// controllers and kubelets run, or are back within these lags; what if not is in
// DESIGN.md.
func (h *Handler) Bound(t executor.Task) (time.Duration, bool) {
	l := load{files: len(t.Files)}
	if _, bytes, err := carry.ListOf(t.Files); err == nil { // what is not there does not begin
		l.in = bytes
	}
	return h.specs.bound(&t, l.fetching())
}

// Start implements executor.Handler. It waits a moment for a node to take the
// pod, so that what Kubernetes refuses is declined with its own reason.
func (h *Handler) Start(ctx context.Context, t executor.Task) error {
	if err := h.leases.fitFiles(t); err != nil {
		return fmt.Errorf("start %s: %w", t.ID, err)
	}
	return h.works.attempts.Start(ctx, t, func() (*work, error) { return h.starter.admit(t) }, func(w *work) error {
		return h.starter.begin(ctx, w)
	})
}

// starter takes attempts in, and waits until Kubernetes has a place for them.
type starter struct {
	cfg      *Config
	life     *life // an attempt that is let in counts in it until its Start is over
	works    *workSet
	view     *clusterView
	leases   *leases
	offer    *offer
	reach    *reach
	client   *jobClient
	finisher *finisher
}

// admit takes room for a new attempt, which counts in life. REQUIRES: workSet.mu held.
func (s *starter) admit(t executor.Task) (*work, error) {
	if away := s.reach.away(); away != nil {
		return nil, fmt.Errorf("%w: %w", executor.ErrBusy, away)
	}
	var n *node
	if name, ok := nodeOf(t.Machine); ok {
		n = s.view.nodes.get(name)
	}
	if err := checkFit(t, n); err != nil {
		return nil, err
	}
	watched := s.leases.isListening() && t.Fence != 0
	if watched {
		if err := fitWatched(t); err != nil {
			return nil, err
		}
	}
	if err := s.works.attempts.MayKeep(t); err != nil {
		return nil, err
	}
	image, err := s.cfg.Images.Admit(t.Image)
	if err != nil {
		return nil, err
	}
	if err = s.offer.checkRoom(t, n); err != nil {
		return nil, err
	}
	w := s.works.newWork(attempts.NewAttempt(t))
	w.image, w.deciding = image.String(), true
	w.watched, w.fence = watched, t.Fence
	w.carried, w.files, w.disk = isCarried(&t), len(t.Files), n.disk > 0
	s.offer.hold(t)
	s.works.byJob[w.job] = w
	s.life.Add(1)
	return w, nil
}

// begin makes an attempt's Job, or leaves no trace of it.
func (s *starter) begin(ctx context.Context, w *work) error {
	defer s.life.Done()
	err := s.createJob(ctx, w)
	if err != nil {
		s.finisher.drop(w)
	}
	return err
}

// createJob writes the attempt's folder, by which Adopt finds it, and makes its Job.
func (s *starter) createJob(ctx context.Context, w *work) error {
	if err := s.writeTask(w); err != nil {
		return fmt.Errorf("make its folder: %w", err)
	}
	if w.watched && s.leases.tooLate(w) {
		return s.finisher.endAttempt(w, watchdog.Late(), [2]int64{})
	}
	err := s.client.create(context.WithoutCancel(ctx), w)
	switch refused := (*refusal)(nil); {
	case errors.As(err, &refused), errors.Is(err, executor.ErrLate), errors.Is(err, executor.ErrUnfit):
		return err
	case err != nil:
		// It may have been made: that is found out behind.
		s.client.isUnclear(w, err)
		s.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("the API server does not say whether a Job was made; it is asked again")
	}
	s.works.mu.Lock()
	w.made = w.made || err == nil
	s.works.mu.Unlock()
	s.works.queue.Add(w.job)
	if err == nil && s.unplaced(ctx, w) {
		return s.declined(w)
	}
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	w.deciding = false
	if w.declined {
		return s.declinedBy(w)
	}
	return nil
}

// unplaced waits until a node has taken the pod. True: Kubernetes says why none
// does, and the attempt is being given up.
func (s *starter) unplaced(ctx context.Context, w *work) bool {
	tick := time.NewTicker(s.cfg.PlaceWait)
	defer tick.Stop()
	for {
		select {
		case <-w.placed:
			return false
		case <-w.Done:
			return false
		case <-w.gone:
			return true
		case <-ctx.Done():
			return false
		case <-s.life.ctx.Done():
			return false
		case <-tick.C:
		}
		if s.view.leaving(w.Task.Machine) {
			continue // the scheduler hears of an end after us
		}
		return s.giveUp(ctx, w)
	}
}

// giveUp gives a start up for which Kubernetes has no place, if it says why.
func (s *starter) giveUp(ctx context.Context, w *work) bool {
	pod, why := s.view.podOf(w.job), ""
	switch {
	case pod == nil:
		why = s.client.complaint(ctx, w)
	case pod.node == "" && pod.unplaced != "":
		why = pod.waitsFor()
	}
	if why == "" {
		return false // nobody says no: it goes on waiting, up to StartLimit
	}
	s.works.mu.Lock()
	if w.kill == nil {
		w.kill = &kill{cause: executor.Stopped, decline: true, why: why}
	}
	s.works.mu.Unlock()
	s.works.queue.Add(w.job)
	return true
}

// declined waits until what is given up is certainly gone.
func (s *starter) declined(w *work) error {
	late := time.NewTimer(s.cfg.CallTimeout)
	defer late.Stop()
	select {
	case <-w.gone:
	case <-w.Done:
	case <-s.life.ctx.Done():
	case <-late.C: // its end will be told as an event
	}
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	w.deciding = false
	if w.declined {
		return s.declinedBy(w)
	}
	return nil
}

// declinedBy returns Start's answer. REQUIRES: workSet.mu held.
func (s *starter) declinedBy(w *work) error {
	return fmt.Errorf("%w: %s", executor.ErrBusy, w.kill.why)
}

// writeTask lets the attempt be found again, also after this machine's power has
// failed: a Job runs on then, as no task of another handler does.
func (s *starter) writeTask(w *work) error {
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return err
	}
	if err := s.writeFiles(w); err != nil {
		return err
	}
	task := w.Task
	task.Files = nil // they have a list of their own
	b, err := json.Marshal(memo{
		Task: task, Image: w.image, Since: w.since, Watched: w.watched, Boot: s.leases.boot,
		Carried: w.carried, Files: w.files, In: w.in, Disk: w.disk,
	})
	if err != nil {
		return err
	}
	if err = attempts.WriteSynced(filepath.Join(w.dir, taskFile), b); err != nil {
		return err
	}
	return attempts.Sync(filepath.Dir(w.dir))
}

// memo is what an attempt's folder says of it.
type memo struct {
	Task  executor.Task `json:"task"`
	Image string        `json:"image"`
	Since time.Time     `json:"since"`
	// Watched: see lease. Boot is the life of the machine for which the task's fence counts.
	Watched bool   `json:"watched,omitempty"`
	Boot    string `json:"boot,omitempty"`
	// See load.
	Carried bool  `json:"carried,omitempty"`
	Files   int   `json:"files,omitempty"`
	In      int64 `json:"in,omitempty"`
	Disk    bool  `json:"disk,omitempty"`
}
