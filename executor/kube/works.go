package kube

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// workSet is the attempts of a handler, and the lock of all that is said of them.
type workSet struct {
	home    string // see labelHome
	folders attempts.Folders

	// queue has the names of the Jobs to look at. It has a lock of its own.
	queue workqueue.TypedRateLimitingInterface[string]

	// mu is the handler's only lock: one look at a Job reads and changes an attempt, its
	// room and its pod together. It guards the fields below, those of work and lease that say
	// so, and the fields that name it of the other parts. Nobody asks the API server under it.
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
