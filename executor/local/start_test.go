package local

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// next returns the handler's next event.
func (o *opened) next() executor.Event {
	o.Helper()
	select {
	case e := <-o.Events():
		return e
	case <-time.After(patience):
		o.Fatal("no event")
	}
	return executor.Event{}
}

// A start is told before the end, of a process that has ended before anybody was told
// as of one that runs on until it is told.
func TestStartIsToldBeforeTheEnd(t *testing.T) {
	o, _ := adopted(t, config(t))
	long := shell(2, "trap 'exit 0' TERM; while :; do sleep 0.01; done")
	for _, task := range []executor.Task{shell(1, "exit 0"), long} {
		o.begin(task)
		if e := o.next(); !e.Started || e.ID != task.ID {
			t.Errorf("first heard of %s: %+v", task.ID, e)
		}
		if task.ID == long.ID {
			if err := o.Stop(t.Context(), task.ID, "told"); err != nil {
				t.Fatal(err)
			}
		}
		if e := o.next(); e.Ended == nil || e.ID != task.ID {
			t.Errorf("then heard of %s: %+v", task.ID, e)
		}
	}
}

// TestRunCountsFromTheFork: on a busy machine a task runs for milliseconds until its
// supervisor gets a processor again. A run that began then was charged 3 ms of 9.
func TestRunCountsFromTheFork(t *testing.T) {
	o, _ := adopted(t, config(t))
	for range 4 * runtime.NumCPU() {
		go func() {
			for t.Context().Err() == nil { // ends with the test
			}
		}()
	}
	for n := range uint32(20) {
		task := shell(n+1, "date +%s%N")
		r := o.run(task)
		at, err := strconv.ParseInt(strings.TrimSpace(o.output(task)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if r.Started.UnixNano() > at {
			t.Errorf("run %d is said to have begun %s after it asked for the time", n, r.Started.Sub(time.Unix(0, at)))
		}
	}
}

// Tasks have the kernel's timer slack, whatever that of their supervisor is.
func TestTasksHaveTheKernelsSlack(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 20*taskSlack, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	o, _ := adopted(t, config(t))
	task := shell(1, "cat /proc/self/timerslack_ns")
	o.run(task)
	if got := o.output(task); got != "50000\n" {
		t.Errorf("a task has a slack of %q ns", got)
	}
}
