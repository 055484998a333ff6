package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// start starts the task, unless its folder is gone, which looks like a command that is not there.
func (a *attempt) start() error {
	err := a.prepare()
	if err != nil {
		if gone := hasFolder(filepath.Join(a.slot, sandbox.WorkFolder), true); gone != nil {
			return &watchdog.Trouble{Cause: gone}
		}
	}
	return err
}

// prepare finds what the task is started with, and launches it.
func (a *attempt) prepare() error {
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
	if err := a.group.setCores(a.Task.Need.MilliCPU); err != nil {
		return err
	}
	a.group.beginUsage()
	return nil
}

// taskSlack is the timer slack of tasks, in nanoseconds: the kernel's default. A
// supervisor has its broker's, which is coarse so that the Go runtime's monitor
// rests; it was a third of what a supervisor costs. No moment that it keeps knows
// slack: they come from a timerfd.
const taskSlack = 50_000

// fork execs the task in a session of its own. It dies with the thread that runs
// this, which never ends before the process.
func (a *attempt) fork(path string, env []string) (err error) {
	p := &watchdog.Process{
		File: path, Env: env, Dir: a.work, Null: a.null.Fd(), Out: [2]uintptr{a.out.Files[0].Fd(), a.out.Files[1].Fd()},
		Attr: syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	if a.group.fd >= 0 {
		p.Attr.UseCgroupFD, p.Attr.CgroupFD = true, a.group.fd
	}
	runtime.LockOSThread() // a child inherits its thread's slack and capabilities
	defer runtime.UnlockOSThread()
	if a.inside {
		p.Attr.Cloneflags = unix.CLONE_NEWIPC // so that nothing of it stays for the next task
		if err = sandbox.Bare(); err != nil {
			return &watchdog.Trouble{Cause: err}
		}
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, taskSlack, 0, 0, 0) // else it has ours
	return a.Fork(p)
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
