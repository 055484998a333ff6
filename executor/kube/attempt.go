package kube

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// work is an attempt as the handler knows it.
type work struct {
	attempts.Attempt
	job   string // the Job's name
	image string // in full
	dir   string
	lease
	load

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
	spared     time.Time // until when its pod is ended in place, and not deleted; zero = it is not being ended
	askAgain   time.Time // when its pod or Job is asked to end once more
	removed    time.Time // when what is left of it was last asked to go
	began      time.Time // seen to run; zero = not yet
	doing      string    // told last
	pod        *podView  // the latest seen; it may be gone
	ceased     time.Time // when its container was first seen to have ended, and its pod not: see awaitsPhase
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

// Files of an attempt's folder.
const (
	taskFile  = "task"
	letFile   = "let"
	beganFile = "began"
	endFile   = "end"
)

// workSet is the attempts of a handler, and the lock of all that is said of them.
type workSet struct {
	home    string // see labelHome
	folders attempts.Folders

	// queue has the names of the Jobs to look at. It has a lock of its own.
	queue workqueue.TypedRateLimitingInterface[string]

	// mu is one lock for all parts of the handler: one look at a Job reads and changes an
	// attempt, its room, its pod and its lease together. It guards the fields below, and those of
	// work, lease, clusterView, reach and offer that say so. Nobody waits for the API server with it.
	mu       sync.Mutex
	attempts *attempts.Set[*work]
	byJob    map[string]*work // the attempts by their Jobs' names
}

func newWorkSet(home string, folders attempts.Folders) *workSet {
	return &workSet{
		home: home, folders: folders,
		byJob: map[string]*work{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 10*time.Second)),
	}
}

// isEnded reports whether an attempt has come to its end, or was declined.
func (s *workSet) isEnded(w *work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.Ended != nil || w.declined
}

// newWork returns an attempt that is not in the set.
func (s *workSet) newWork(a attempts.Attempt) *work {
	return &work{
		Attempt: a, job: jobName(s.home, a.Task.ID), dir: s.folders.Of(a.Name), since: time.Now(),
		placed: make(chan struct{}), running: make(chan struct{}), gone: make(chan struct{}),
		cleaned: make(chan struct{}),
	}
}
