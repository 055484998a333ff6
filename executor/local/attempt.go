package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// attempt is a supervisor's work on one attempt.
type attempt struct {
	*supervisor
	watchdog.Watch
	name string
	CPUs []int // of its own
	// tell is when the broker hears word, that the process runs; watchdog.Never = it has.
	tell int64
	word []byte
	// told: the broker asked for the end. signalled: outside a sandbox, a signal did; stray: and nobody else.
	told, signalled, stray bool
	// cut: its network has gone. ours: we ended it for that.
	cut, ours bool
	// over: it has gone over its scratch. oom: the kernel has killed of it for memory.
	over, oom bool
	scratch   *scratch // nil = no bound
	// askAt is when the journal is asked what a signal meant, watchdog.Never = none came;
	// askedAt is when that was done last.
	askAt, askedAt int64
}

var _ watchdog.Link = (*attempt)(nil)

func newAttempt(s *supervisor, ask *asked) *attempt {
	a := &attempt{
		supervisor: s, name: ask.Task.ID.String(), CPUs: ask.CPUs, tell: watchdog.Never, askAt: watchdog.Never,
	}
	a.Watch = watchdog.Watch{
		Task: ask.Task, Grace: ask.Grace, MaxLog: ask.MaxLog,
		Fence: s.fence, Sources: s.sources, Clerk: s.clerk, Out: &s.out, Link: a, Signal: a.signal,
	}
	return a
}

// run starts the task and sees it to its end: when run returns, no process of
// the attempt is left.
func (a *attempt) run() executor.Result {
	r := a.Run(a.start)
	a.scratch.finish()
	if a.stray && r.Cause == executor.Stopped {
		r.Cause, r.Detail = executor.Orphaned, strayed
	}
	a.blameNetwork(&r)
	return r
}

// killAll kills all of the attempt's processes.
func (a *attempt) killAll() {
	if a.inside { // it needs no group for that, and would have to make a new one
		a.group.freeIO()
	} else {
		a.group.killAll()
	}
	a.signalAll(unix.SIGKILL)
}

// signalAll signals all of the attempt's processes.
func (a *attempt) signalAll(sig unix.Signal) {
	if a.inside { // all of them but this one, in one go: no fork escapes
		watchdog.SignalAll(sig)
		return
	}
	signalTree(os.Getpid(), sig)
}

// report settles the attempt's files, then records and tells its end. After an error the
// next attempt could see something of this one.
func (a *attempt) report(r executor.Result) (unclean error) {
	a.clerk.Flush()
	e := &ended{Name: a.name, Result: r, At: time.Now()}
	e.Out, e.Err = a.keepOutput(0), a.keepOutput(1)
	word := a.record(line{End: e}) // it counts, whatever becomes of what is left
	cleaned := make(chan error, 1)
	err := a.cleanInTime(&r, cleaned)
	if err == nil && a.isCutOff() {
		err = errNoNetwork
	}
	switch {
	case err != nil && a.inside:
		unclean = err
		a.resign(err) // before the end is told: it is given nothing more
	case err != nil:
		fmt.Fprintf(os.Stderr, "supervise: clean up after %s: %v\n", a.name, err)
	}
	a.send(word)
	if errors.Is(unclean, errCleansLong) {
		unclean = cmp.Or(<-cleaned, unclean) // nobody waits for that
	}
	return unclean
}
