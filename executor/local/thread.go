package local

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// sideThread is a thread of the supervisor's for what only a thread can be given:
// CPUs, and a memory cgroup of v1, whose members are threads. What it forks
// inherits both. It is never the process's first one, whose cgroup would count
// the whole process's memory, and it never ends: children die with the thread that
// forked them (PR_SET_PDEATHSIG). The runtime's other threads never end, either.
type sideThread struct{ jobs chan func() }

// do runs f there and waits for it.
func (t *sideThread) do(f func() error) (err error) {
	if t.jobs == nil {
		t.jobs = make(chan func())
		go serveThread(t.jobs)
	}
	done := make(chan struct{})
	t.jobs <- func() {
		err = f()
		close(done)
	}
	<-done
	return err
}

func serveThread(jobs <-chan func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		go serveThread(jobs) // this one holds the first thread meanwhile
		select {}
	}
	for job := range jobs {
		job()
	}
}

// spareThreads is how many threads a supervisor has beyond the first, as many as have been
// seen in one.
const spareThreads = 6
