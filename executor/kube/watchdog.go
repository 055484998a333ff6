package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
	"github.com/cloudshare/cloudshare/executor/kube/guard"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Watchdog configures the first process of the pods of other sites' tasks, by which
// the lease is their fence. The zero value is none.
type Watchdog struct {
	// Image of this very program, whose entrypoint it is.
	Image string
	// Listen is the host:port where watchdogs ask the handler, and URL, as
	// http://HOST:PORT, what pods reach that by.
	Listen, URL string
}

func (c Watchdog) validate() error {
	if c == (Watchdog{}) {
		return nil
	}
	if c.Image == "" || c.Listen == "" || c.URL == "" {
		return errors.New("kube: watchdog: image, listen and url belong together: name all three, or none of them")
	}
	if _, err := executor.ParseImage(c.Image); err != nil {
		return fmt.Errorf("kube: watchdog.image %.100q: %w", c.Image, err)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("kube: watchdog.listen %q: must be HOST:PORT", c.Listen)
	}
	if err := guard.CheckURL(c.URL); err != nil {
		return fmt.Errorf("kube: watchdog.%w", err)
	}
	return nil
}

// leases is what keeps watched attempts to the lease. The parts of lease that change are
// guarded by workSet.mu.
type leases struct {
	log   zerolog.Logger
	grace time.Duration
	works *workSet
	nodes *mirror[node]
	// fence is until when foreign attempts may live, unless their own is later. It
	// outlives the broker, and is void once its machine was restarted.
	fence *watchdog.Page
	file  *os.File
	boot  string
	key   []byte // secrets of attempts are made of it
	// listener is nil if there is no watchdog. Attempts of earlier lives may have one.
	listener net.Listener
	server   *http.Server
	carrier  *carrier // of files; nil as listener
}

// openLeases takes what is in the folder, and the address.
func openLeases(cfg Config) (l *leases, err error) {
	l = &leases{boot: watchdog.BootID(), grace: cfg.Grace, log: cfg.Logger}
	if l.fence, l.file, err = watchdog.OpenPage(filepath.Join(cfg.Dir, "fence")); err != nil {
		return nil, err
	}
	if cfg.Watchdog != (Watchdog{}) {
		if err = l.listen(filepath.Join(cfg.Dir, "watchdog.key"), cfg.Watchdog.Listen); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *leases) listen(keyFile, addr string) (err error) {
	if l.key, err = readKey(keyFile); err != nil {
		return fmt.Errorf("read the watchdogs' key: %w", err)
	}
	l.carrier = &carrier{key: l.key}
	l.server = guard.NewServer(l.key, l.answer, l.carrier)
	l.listener, err = guard.Listen(addr, carry.KeyOf(l.key))
	return err
}

// keyBytes of a handler's key.
const keyBytes = 32

// readKey reads the key, which is made once for a folder: pods outlive the broker.
func readKey(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == keyBytes || err != nil && !errors.Is(err, os.ErrNotExist) {
		return b, err
	}
	b = make([]byte, keyBytes)
	_, _ = rand.Read(b) // never fails
	return b, attempts.WriteSynced(path, b)
}

// isListening reports whether other sites' tasks have watchdogs now.
func (l *leases) isListening() bool { return l.listener != nil }

// serve answers until the handler is closed.
func (l *leases) serve() {
	if err := l.server.Serve(l.listener); !errors.Is(err, http.ErrServerClosed) {
		l.log.Error().Err(err).Msg("watchdogs are not answered any more: other sites' tasks end with the lease")
	}
}

func (l *leases) close() error {
	var errs []error
	if l.server != nil {
		errs = append(errs, l.server.Close())
	}
	if l.listener != nil {
		if err := l.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, l.fence.Close(), l.file.Close())...)
}

// Watched is a handler with a watchdog in the pods of other sites' tasks, which are
// held to the lease and need no timeout, and in those of all tasks with files.
type Watched struct{ *Handler }

var (
	_ executor.Handler  = Watched{}
	_ executor.Extender = Watched{}
	_ executor.Finder   = Watched{}

	_ executor.Collector = Watched{}
)

// OpenWatched is [Open] for a configuration with a watchdog.
func OpenWatched(cfg Config) (Watched, error) {
	if cfg.Watchdog == (Watchdog{}) {
		return Watched{}, errors.New("kube: watchdog: no image is named")
	}
	h, err := open(cfg)
	return Watched{h}, err
}

// Extend implements executor.Extender. What was not extended in time is over: it
// is never given leave again.
func (h Watched) Extend(boottime int64) error { return h.leases.extend(boottime) }

func (l *leases) extend(boottime int64) error {
	l.works.mu.Lock()
	defer l.works.mu.Unlock()
	if l.works.attempts.Closed() {
		return fmt.Errorf("extend fences: %w", attempts.ErrClosed)
	}
	l.lapse()
	l.fence.Extend(boottime)
	return nil
}

// lease is what a watched attempt knows of its own.
type lease struct {
	// watched: its container's first process is a watchdog. fence is the task's own,
	// 0 = void since the machine was restarted. Neither changes.
	watched bool
	fence   int64
	// The rest is guarded by workSet.mu.

	// run is the one life of its container that was given leave to begin, "" = none
	// was. Invariant: set once, and kept in its folder before the leave is given.
	run string
	// granted is the moment by which its watchdog ends it, should it hear nothing
	// more. Invariant: only grows.
	granted int64
}

// runFile of an attempt's folder.
const runFile = "run"

// margin is what a task must have besides its grace to be worth a start.
const margin = 1500 * time.Millisecond

// silence is how long after a watchdog's last moment Kubernetes is waited for, which
// knows better how the task ended.
const silence = 10 * time.Second

// fenceOf returns until when an attempt may live. REQUIRES: workSet.mu held.
func (l *leases) fenceOf(w *work) int64 { return max(w.fence, l.fence.Load()) }

// fitWatched says why a task cannot be put under a watchdog.
func fitWatched(t executor.Task) error {
	if len(t.Command) == 0 {
		return fmt.Errorf("%w: it has no command, and what its image runs by itself is not known here: "+
			"tasks of other sites, and those with files, are begun by a watchdog, so give the job a command", executor.ErrUnfit)
	}
	return nil
}

// tooLate: there is not time enough left to begin at all.
func (l *leases) tooLate(w *work) bool {
	l.works.mu.Lock()
	defer l.works.mu.Unlock()
	return executor.Boottime()+int64(l.grace+margin) >= l.fenceOf(w)
}

// lapse ends the attempts whose fence has passed: for good, since the federation
// may have given their tasks to others. REQUIRES: workSet.mu held.
func (l *leases) lapse() {
	now := executor.Boottime()
	if now < l.fence.Load() {
		return
	}
	for w := range l.works.attempts.Running() {
		if w.watched && w.kill == nil && now >= l.fenceOf(w) {
			l.lapsed(w)
		}
	}
}

// lapsed ends an attempt. REQUIRES: workSet.mu held.
func (l *leases) lapsed(w *work) {
	w.kill = leaseEnded()
	l.works.queue.Add(w.job)
}

// lapseEach looks for attempts whose fence has passed.
func (l *leases) lapseEach(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		l.works.mu.Lock()
		l.lapse()
		l.works.mu.Unlock()
	}
}

// answer tells a watchdog how long its attempt may live. Of the lives of an
// attempt's container only the first to ask ever begins: a kubelet that has lost its
// memory runs a pod again.
func (l *leases) answer(q guard.Question) guard.Answer {
	l.works.mu.Lock()
	defer l.works.mu.Unlock()
	if l.works.attempts.Closed() {
		return guard.Answer{}
	}
	w, now := l.works.attempts.Get(q.Attempt), executor.Boottime()
	if w == nil || !w.watched || w.Ended != nil || w.declined || w.kill != nil || w.run != "" && w.run != q.Run {
		return guard.Answer{End: true}
	}
	left := min(time.Duration(l.fenceOf(w)-now), guard.MaxLeft)
	if left <= 0 {
		l.lapsed(w)
		return guard.Answer{End: true}
	}
	if w.run == "" {
		if left <= l.grace+margin {
			return guard.Answer{} // it may be extended
		}
		if err := writeFile(w.dir, runFile, q.Run); err != nil {
			l.log.Warn().Err(err).Str("attempt", w.Name).Msg("start not recorded; waiting")
			return guard.Answer{}
		}
		w.run = q.Run
		l.works.queue.Add(w.job)
	}
	w.granted = max(w.granted, now+int64(left))
	return guard.Answer{Left: left}
}

// adopt reads what is known of an attempt's lease from its folder.
func (l *leases) adopt(w *work, m memo) error {
	if w.watched = m.Watched; !w.watched {
		return nil
	}
	// What an earlier life of the broker allowed.
	w.granted = executor.Boottime() + int64(guard.MaxLeft)
	if m.Boot == l.boot {
		w.fence = m.Task.Fence
		w.granted = min(w.granted, l.fenceOf(w))
	}
	if err := readJSON(filepath.Join(w.dir, runFile), &w.run); outputs.MayPass(err) {
		return err
	} else if err != nil {
		w.run = ""
	}
	if w.run == "" && m.Boot != l.boot { // a power failure may have swallowed it
		w.run = "forgotten"
	}
	return nil
}

// mustBeDead says how a watched attempt ended of which Kubernetes says nothing; nil: it
// may live, or Kubernetes will say. Nothing of it is alive after the last moment that
// its watchdog was told.
func (l *leases) mustBeDead(w *work, pod *podView) *executor.Result {
	dark := pod != nil && pod.node != "" && !l.speaks(pod.node)
	l.works.mu.Lock()
	defer l.works.mu.Unlock()
	switch {
	case !w.watched, w.kill == nil && !dark, w.kill == nil && w.run == "":
		return nil
	case executor.Boottime() < w.moved.Load()+int64(silence): // its files come
		return nil
	case w.run == "" && w.granted == 0:
		w.granted = executor.Boottime() // no leave is given from now on
	}
	switch {
	case executor.Boottime() < w.granted+int64(silence):
		return nil
	case w.run == "":
		r := w.kill.unstarted()
		return &r
	}
	k := cmp.Or(w.kill, &kill{cause: executor.Fenced})
	r := executor.Result{Cause: k.cause, Started: w.began, ExitCode: 137, Signal: 9, Detail: k.detail(w.Task)}
	if !w.began.IsZero() {
		r.Run = time.Since(w.began)
	}
	return &r
}

// speaks reports whether a node's kubelet does.
func (l *leases) speaks(node string) bool {
	n := l.nodes.get(node)
	return n != nil && n.ready
}

// recheck returns when to look again at an attempt that is to be looked at after again.
func (l *leases) recheck(w *work, again time.Duration) time.Duration {
	l.works.mu.Lock()
	defer l.works.mu.Unlock()
	if !w.watched || w.kill == nil || w.granted == 0 {
		return again
	}
	return min(again, max(time.Duration(w.granted-executor.Boottime())+silence, time.Second))
}

// certain turns the end of a watched attempt that may still run, for all that
// Kubernetes says, into one that is certain; wait: not yet. That nothing was seen to run
// says nothing if leave was given. REQUIRES: workSet.mu held.
func (l *leases) certain(w *work, r executor.Result) (_ executor.Result, wait time.Duration) {
	unseen := w.run != "" && r.Cause != executor.Exited && (w.pod == nil || w.pod.node == "")
	if !w.watched || r.Cause != executor.Vanished && !unseen {
		return r, 0
	}
	if w.kill == nil {
		w.kill = &kill{cause: executor.Fenced, why: r.Detail} // no leave is given any more
	}
	if wait = time.Duration(w.granted - executor.Boottime()); w.run != "" && wait > 0 {
		return r, wait
	}
	if r.Cause == executor.Vanished {
		r.Cause = executor.Fenced
	}
	return r, 0
}

// hasLeave: what runs in its pod is the task, not a watchdog that waits.
func (l *leases) hasLeave(w *work) bool {
	l.works.mu.Lock()
	defer l.works.mu.Unlock()
	return !w.watched || w.run != ""
}
