package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// attempt is a supervisor's work on one attempt.
type attempt struct {
	*supervisor
	asked
	name string

	plan watchdog.Plan
	watchdog.Reaper
	child int // pidfd of its process
	// started and began are when that was forked, by the wall and since boot (ns): before, not
	// after, for a task may run for milliseconds until its supervisor gets a processor again.
	started time.Time
	began   int64
	// tell is when the broker hears word, that the process runs; watchdog.Never = it has.
	tell int64
	word []byte
	why  string // of Stop
	// told: the broker asked for the end. signalled: outside a sandbox, a signal did.
	told, signalled bool
	scratch         *scratch // nil = no bound
	over            string   // what bound it has gone over
	// askAt is when the journal is asked what a signal meant, watchdog.Never = none came;
	// asked is when that was done last.
	askAt, askedAt int64
}

// tellAfter is how long a process runs before the broker hears of its start: of a
// shorter one it hears with the end. To hear of a start costs a broker as much as of
// an end.
const tellAfter = int64(5 * time.Millisecond)

// run starts the task and sees it to its end: when run returns, no process of
// the attempt is left.
func (a *attempt) run() executor.Result {
	now := executor.Boottime()
	a.plan = watchdog.Plan{Fence: a.Task.Fence, Grace: int64(a.Grace)}
	a.out.Begin()
	if a.plan.TooLate(now, a.fence.Load()) {
		return watchdog.Late()
	}
	if err := a.start(); err != nil {
		if gone := hasFolder(filepath.Join(a.slot, sandbox.WorkFolder), true); gone != nil {
			err = &watchdog.Trouble{Cause: gone}
		}
		return watchdog.NotBegun(err)
	}
	defer a.scratch.finish()
	if a.Task.Timeout > 0 {
		a.plan.TimeOut(a.began, a.Task.Timeout)
	}
	a.word, a.tell = a.recordLater(line{Run: &begun{Name: a.name, Pid: a.Pid, At: a.started}}), a.began+tellAfter
	a.watchTask()
	r := executor.Result{Cause: executor.Exited, Started: a.started, Run: time.Duration(executor.Boottime() - a.began)}
	a.ReapAll(a.killAll) // not by its process group: that number may be another's by now
	unix.Close(a.child)
	stray := a.signalled && !a.told && !a.isStopped(executor.Boottime())
	end := watchdog.End{Over: a.over, Status: a.Status, Why: a.why, OOM: a.group.oomKilled(), MemMiB: a.memLimit()}
	a.plan.Explain(&r, a.Task, end)
	if stray && r.Cause == executor.Stopped {
		r.Cause, r.Detail = executor.Orphaned, strayed
	}
	return r
}

func (a *attempt) start() error {
	if err := a.boundScratch(); err != nil {
		return &watchdog.Trouble{Cause: err}
	}
	env, err := watchdog.Environ(a.Task, a.work)
	if err != nil {
		return err
	}
	if len(a.Task.Command) == 0 {
		return errors.New("no command given")
	}
	path, err := watchdog.LookPath(a.Task.Command[0], env)
	if err != nil {
		return err
	}
	if !a.group.needsThread(a.memLimit()) {
		return a.launch(path, env)
	}
	return a.thread.do(func() error { return a.launch(path, env) })
}

// launch forks the task, held to what it asked for; a cgroup that others have removed is
// made once more. REQUIRES: on the side thread, if the group needs it.
func (a *attempt) launch(path string, env []string) error {
	err := a.launchOnce(path, env)
	if err != nil && a.group.isGone() {
		a.group.lost()
		err = a.launchOnce(path, env)
	}
	return err
}

func (a *attempt) launchOnce(path string, env []string) (err error) {
	if trouble := a.setLimits(); trouble != nil {
		return &watchdog.Trouble{Cause: trouble}
	}
	if trouble := a.pinned(func() { err = a.fork(path, env) }); trouble != nil {
		return &watchdog.Trouble{Cause: trouble}
	}
	if err != nil {
		return watchdog.StartError(a.Task, path, err)
	}
	return nil
}

// setLimits sets the limits of the attempt's group.
func (a *attempt) setLimits() error {
	if err := a.group.ready(); err != nil {
		return err
	}
	if err := a.group.setLimit(a.memLimit()); err != nil {
		return err
	}
	return a.group.setCores(a.Task.Need.MilliCPU)
}

// taskSlack is the timer slack of tasks, in nanoseconds: the kernel's default. A
// supervisor has its broker's, which is coarse so that the Go runtime's monitor
// rests; it was a third of what a supervisor costs. No moment that it keeps knows
// slack: they come from a timerfd.
const taskSlack = 50_000

// fork execs the task in a session of its own. It dies with the thread that runs
// this, which never ends before the process.
func (a *attempt) fork(path string, env []string) (err error) {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &a.child}
	if a.group.fd >= 0 {
		sys.UseCgroupFD, sys.CgroupFD = true, a.group.fd
	}
	runtime.LockOSThread() // a child inherits its thread's slack and capabilities
	defer runtime.UnlockOSThread()
	if a.inside {
		sys.Cloneflags = unix.CLONE_NEWIPC // so that nothing of it stays for the next task
		if err = sandbox.Bare(); err != nil {
			return &watchdog.Trouble{Cause: err}
		}
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, taskSlack, 0, 0, 0) // else it has ours
	a.started, a.began = time.Now(), executor.Boottime()
	a.Pid, err = syscall.ForkExec(path, a.Task.Command, &syscall.ProcAttr{
		Dir: a.work, Env: env, Sys: sys,
		Files: []uintptr{a.null.Fd(), a.out.Files[0].Fd(), a.out.Files[1].Fd()},
	})
	return err
}

// pinned runs fork on the attempt's CPUs, which its children inherit, if it has any of
// its own; an error says that it did not.
func (a *attempt) pinned(fork func()) error {
	if len(a.CPUs) == 0 {
		fork()
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set unix.CPUSet
	for _, cpu := range a.CPUs {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPUs %v: %w", a.CPUs, err)
	}
	fork()
	_ = unix.SchedSetaffinity(0, &a.allCPUs) // it could just before
	return nil
}

// watchTask returns when the task's own process has ended, by itself or by us.
func (a *attempt) watchTask() {
	look, pace := executor.Boottime()+watchdog.MinLook, watchdog.MinLook
	stop := false
	for !a.Exited {
		now := executor.Boottime()
		stop = stop || now >= a.askAt && a.isStopped(now)
		if a.over = a.scratch.look(now); a.over != "" {
			a.act(watchdog.Kill) // at once: it would write on
		}
		act, wake := a.plan.Step(now, a.fence.Load(), stop)
		a.act(act)
		if now >= a.tell {
			a.send(a.word)
			a.word, a.tell = nil, watchdog.Never
		}
		if now >= look {
			a.Reap() // orphans that the task left to us
			pace = a.clerk.Look(&a.out, a.MaxLog, pace)
			look = now + pace
			continue
		}
		from, err := a.sources.wait(a.child, min(wake, look, a.tell, a.askAt))
		if err != nil {
			// Nothing can be watched any more: end it rather than lose it.
			_, _ = a.plan.Step(executor.Boottime(), a.fence.Load(), true)
			a.why = err.Error()
			a.act(watchdog.Kill)
			_, _ = unix.Wait4(a.Pid, (*unix.WaitStatus)(&a.Status), 0, nil)
			return
		}
		if from&fromChild != 0 {
			a.Reap()
		}
		stop = a.receiveCommand(from) || stop
	}
}

// receiveCommand takes what the broker says and reports whether it wants a stop.
func (a *attempt) receiveCommand(from int) (stop bool) {
	if from&fromTerm != 0 && drain(a.termed) {
		stop, a.signalled = !a.inside, !a.inside
		a.askAt = a.askedAt + askPause
	}
	if from&fromBroker == 0 {
		return stop
	}
	msg, err := a.receive()
	if err != nil {
		a.orphan = true
	}
	if rest, ok := strings.CutPrefix(msg, "stop "+a.name+" "); ok {
		a.why, a.told, stop = rest, true, true
	}
	return stop
}

func (a *attempt) act(act watchdog.Action) {
	switch act {
	case watchdog.Term:
		_ = unix.Kill(-a.Pid, unix.SIGTERM)
		_ = unix.Kill(-a.Pid, unix.SIGCONT)
		a.signalAll(unix.SIGTERM)
	case watchdog.Kill:
		_ = unix.Kill(-a.Pid, unix.SIGKILL)
		a.killAll()
	case watchdog.Rest:
	}
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
		_ = unix.Kill(-1, sig)
		return
	}
	signalTree(os.Getpid(), sig)
}

// askPause is between two looks into the journal: a task may signal as often as it likes.
const askPause = int64(100 * time.Millisecond)

// isStopped reports whether a later broker has written that it wants the end of this
// attempt, and takes over why: in a sandbox the signal may be the task's own.
func (a *attempt) isStopped(now int64) bool {
	a.askAt, a.askedAt = watchdog.Never, now
	lines, err := readJournal(io.NewSectionReader(a.journal, 0, math.MaxInt64))
	for _, l := range lines {
		if l.Stop != nil && l.Stop.Name == a.name {
			a.why = l.Stop.Why
			return true
		}
	}
	return err != nil // rather end it than never
}

// report settles the attempt's files, then records and tells its end. After an error the
// next attempt could see something of this one.
func (a *attempt) report(r executor.Result) (unclean error) {
	a.clerk.Flush()
	e := &ended{Name: a.name, Result: r, At: time.Now()}
	e.Out, e.Err = a.keepOutput(0), a.keepOutput(1)
	word := a.record(line{End: e}) // it counts, whatever becomes of what is left
	cleaned := make(chan error, 1)
	switch err := a.cleanInTime(r, cleaned); {
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
