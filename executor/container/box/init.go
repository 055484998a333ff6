package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Verb is the argument with which the program is Init.
const Verb = "box"

// Init is the life of a container's first process. It runs the task of its order
// as a child, ends it at its timeout, at its fence or when it is asked to, and
// tells how it ended. Whatever it leaves, or what it would leave if it were
// killed, dies with it: the kernel ends a container with its first process. It
// needs neither the broker nor the engine for any of this, and no capability. It
// returns the exit code.
func Init() int {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(8 << 20) // it counts to the task's own limit
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "box: this is the first process of a task's container, and starts nowhere else")
		return 2
	}
	b := &boxed{child: -1, clerk: watchdog.NewClerk()}
	if err := b.open(); err != nil {
		fmt.Fprintf(os.Stderr, "box: %v\n", err)
		return 1
	}
	r := b.run()
	b.report(r)
	return r.ExitCode
}

// boxed is Init's work on its only attempt.
type boxed struct {
	order Order
	told  *os.File
	stops *os.File
	fence *watchdog.Page
	out   watchdog.Output
	clerk *watchdog.Clerk
	timer int // timerfd on CLOCK_BOOTTIME

	plan watchdog.Plan
	watchdog.Reaper
	child int    // pidfd of its process
	why   string // of a stop
}

// open takes the attempt; it fails if it was begun before.
func (b *boxed) open() (err error) {
	if b.told, err = os.OpenFile(filepath.Join(Box, told), os.O_RDWR|os.O_APPEND, 0); err != nil {
		return err
	}
	if err = unix.Flock(int(b.told.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", told, err)
	}
	if st, serr := b.told.Stat(); serr != nil || st.Size() > 0 {
		return errors.Join(errors.New("this attempt was begun before: a container is started once"), serr)
	}
	if b.order, err = ReadOrder(Box); err != nil {
		return err
	}
	if b.stops, err = os.OpenFile(filepath.Join(Box, stops), os.O_RDWR|unix.O_NONBLOCK, 0); err != nil {
		return err
	}
	for i, name := range []string{Stdout, Stderr} {
		if b.out.Files[i], err = os.OpenFile(filepath.Join(Box, name), os.O_RDWR|os.O_APPEND, 0); err != nil {
			return err
		}
	}
	f, err := os.Open(filepath.Join(Run, Fence))
	if err != nil {
		return err
	}
	defer f.Close()
	if b.fence, err = watchdog.MapPage(int(f.Fd())); err != nil {
		return err
	}
	if b.timer, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return fmt.Errorf("make timer: %w", err)
	}
	// Nobody can say who sent a signal: the task would end its attempt by one, as if its site had.
	if err = sandbox.DropSignals(); err != nil {
		return fmt.Errorf("drop signals: %w", err)
	}
	return nil
}

// run starts the task and sees it to its end: when run returns, no process is
// left but this one.
func (b *boxed) run() executor.Result {
	if boot := watchdog.BootID(); boot != b.fence.Boot() {
		return watchdog.NotBegun(&watchdog.Trouble{Cause: errors.New("the container engine runs on another machine than its broker")})
	}
	b.plan = watchdog.Plan{Fence: b.order.Task.Fence, Grace: int64(b.order.Grace)}
	if b.plan.TooLate(executor.Boottime(), b.fence.Load()) {
		return watchdog.Late()
	}
	if err := b.start(); err != nil {
		return watchdog.NotBegun(err)
	}
	started, at := time.Now(), executor.Boottime()
	if t := b.order.Task.Timeout; t > 0 {
		b.plan.TimeOut(at, t)
	}
	b.clerk.Do(func() { b.writeWord(line{Run: &Begun{At: started}}) })
	b.watchTask()
	r := executor.Result{Cause: executor.Exited, Started: started, Run: time.Duration(executor.Boottime() - at)}
	b.ReapAll(func() { killAll(unix.SIGKILL) })
	b.plan.Explain(&r, b.order.Task, watchdog.End{Status: b.Status, Why: b.why, OOM: oomKilled()})
	return r
}

// spareThreads are those that this process is given before there is a task ([sandbox.Guard]).
const spareThreads = 6

func (b *boxed) start() error {
	t := b.order.Task
	env, err := watchdog.Environ(t, Work, b.order.Image.Env...)
	if err != nil {
		return err
	}
	if len(t.Command) == 0 {
		return errors.New("no command given, and the image has none")
	}
	path, err := watchdog.LookPath(t.Command[0], env)
	if err != nil {
		return err
	}
	dir := b.order.Image.WorkingDir
	if dir == "" || dir == "/" {
		dir = Work
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return &watchdog.Trouble{Cause: err}
	}
	defer null.Close()
	// The kernel is to kill the task for memory, not its watchdog. Opened first:
	// what is not dumpable may not open it.
	if oom, oerr := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0); oerr == nil {
		defer oom.Close()
		_, _ = oom.WriteString("500")
		defer func() { _, _ = oom.WriteString("0") }()
	}
	// Before there is a task: it is the same user, and must not look into us.
	if err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return &watchdog.Trouble{Cause: fmt.Errorf("close this process to others: %w", err)}
	}
	if err = sandbox.Guard(spareThreads); err != nil {
		return &watchdog.Trouble{Cause: fmt.Errorf("guard this process: %w", err)}
	}
	b.Pid, err = syscall.ForkExec(path, t.Command, &syscall.ProcAttr{
		Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &b.child},
		Files: []uintptr{null.Fd(), b.out.Files[0].Fd(), b.out.Files[1].Fd()},
	})
	if err != nil {
		return watchdog.StartError(t, path, err)
	}
	return nil
}

// watchTask returns when the task's own process has ended, by itself or by us.
func (b *boxed) watchTask() {
	pace := watchdog.MinLook
	look := executor.Boottime() + pace
	stop := false
	for !b.Exited {
		now := executor.Boottime()
		act, wake := b.plan.Step(now, b.fence.Load(), stop)
		switch act {
		case watchdog.Term:
			killAll(unix.SIGTERM)
			killAll(unix.SIGCONT)
		case watchdog.Kill:
			killAll(unix.SIGKILL)
		case watchdog.Rest:
		}
		b.Reap()
		if now >= look {
			pace = b.clerk.Look(&b.out, b.order.MaxLog, pace)
			look = now + pace
		}
		if !b.Exited {
			stop = b.poll(min(wake, look)) || stop
		}
	}
}

// killAll signals every process of the container but this one. All of them are
// of our own user: nobody here has the capability to become another.
func killAll(sig unix.Signal) { _ = unix.Kill(-1, sig) }

// poll waits until something happens or wake (CLOCK_BOOTTIME ns) has come, and
// reports whether the end is asked for.
func (b *boxed) poll(wake int64) (stop bool) {
	spec := unix.ItimerSpec{}
	if wake != watchdog.Never {
		spec.Value = unix.NsecToTimespec(max(wake, 1))
	}
	if err := unix.TimerfdSettime(b.timer, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		b.why = "set timer: " + err.Error()
		return true // nothing can be watched any more
	}
	fds := []unix.PollFd{
		{Fd: int32(b.stops.Fd()), Events: unix.POLLIN},
		{Fd: int32(b.child), Events: unix.POLLIN},
		{Fd: int32(b.timer), Events: unix.POLLIN},
	}
	if _, err := unix.Poll(fds, -1); err != nil {
		return false // a signal
	}
	if fds[0].Revents != 0 {
		buf := make([]byte, 4<<10)
		n, _ := unix.Read(int(b.stops.Fd()), buf)
		first, _, _ := bytes.Cut(buf[:max(n, 0)], []byte("\n"))
		b.why, stop = string(first), true
	}
	return stop
}

// oomKilled reports whether the kernel killed for memory in this container, if its own
// cgroup can be seen here.
func oomKilled() bool {
	for _, path := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for l := range strings.Lines(string(b)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(l), "oom_kill "); ok && n != "0" {
				return true
			}
		}
	}
	return false
}

func (b *boxed) writeWord(l line) {
	if err := writeLine(b.told, l); err != nil {
		fmt.Fprintf(os.Stderr, "box: tell: %v\n", err)
	}
}

// report marks cut output, empties the private directory, which only this user
// may be able to, and tells the end.
func (b *boxed) report(r executor.Result) {
	b.clerk.Flush()
	for i := range b.out.Files {
		b.out.Finish(i, b.order.MaxLog)
	}
	empty(Work)
	b.writeWord(line{End: &Ended{Result: r, At: time.Now()}})
}

// empty removes what a directory holds, also below directories that deny it to
// their owner. What stays is the handler's.
func empty(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		_ = watchdog.RemoveTree(filepath.Join(dir, e.Name()))
	}
}
