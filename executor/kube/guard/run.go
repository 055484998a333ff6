package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Verb is the argument with which the program is a guard; what follows is the
// task's command. With [Install] and a folder instead it is copied there.
const (
	Verb    = "watchdog"
	Install = "--install"
)

// Main is the life of a guard, and returns its exit code: the task's, 128 and the
// signal's number for one that a signal ended.
func Main(args []string) int {
	if len(args) == 2 && args[0] == Install {
		if err := install(args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", Verb, err)
			return 1
		}
		return 0
	}
	if os.Getpid() != 1 {
		fmt.Fprintf(os.Stderr, "%s: this is the first process of a task's container, and starts nowhere else\n", Verb)
		return 2
	}
	// Whatever the task's environment says of these: it counts to the task's memory.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(12 << 20)
	runtime.GOMAXPROCS(2)
	t := guardTask(args, os.Environ())
	if err := os.WriteFile(told, t.encode(), 0o600); err != nil {
		fmt.Fprintf(os.Stderr, "%s: tell how the task ended: %v\n", Verb, err)
	}
	return t.ExitCode
}

// guardTask runs a command to its end.
func guardTask(command, environ []string) Told {
	text, env := split(environ)
	o, err := DecodeOrders(text)
	if err == nil && len(command) == 0 {
		err = errors.New("no command")
	}
	// Before there is a task: it is the same user, and must not look into us.
	if derr := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err == nil && derr != nil {
		err = fmt.Errorf("close this process to others: %w", derr)
	}
	if err != nil {
		return Told{Cause: executor.Stopped, ExitCode: 125, Detail: err.Error()}
	}
	g := &guard{orders: o, asker: newAsker(o), calls: make(chan os.Signal, 16)}
	signal.Notify(g.calls, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGCHLD)
	return g.run(command, env)
}

// guard is the work on its only attempt.
type guard struct {
	orders Orders
	asker  *asker
	calls  chan os.Signal // what comes from outside, and of children
	plan   watchdog.Plan
	watchdog.Reaper
}

// run returns when the task has ended: no process is left then but this one.
func (g *guard) run(command, env []string) Told {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		g.asker.askUntilEnd(ctx)
	}()
	if refused, ok := g.awaitLeave(); !ok {
		cancel()
		<-asking
		if refused.Detail == "" {
			refused.Detail = fmt.Sprintf("not started: nobody at %s says that its site has a lease: %v", g.orders.URL, g.asker.said)
		}
		return refused
	}
	g.plan = watchdog.Plan{Fence: g.asker.until.Load(), Grace: int64(g.orders.Grace)}
	if g.plan.TooLate(executor.Boottime(), g.asker.until.Load()) {
		return Told{Cause: executor.Fenced, ExitCode: 125, Detail: watchdog.Late().Detail}
	}
	if err := g.start(command, env); err != nil {
		r := watchdog.NotBegun(err)
		return Told{Cause: r.Cause, ExitCode: r.ExitCode, Detail: r.Detail}
	}
	began := executor.Boottime()
	if g.orders.Timeout > 0 {
		g.plan.TimeOut(began, g.orders.Timeout)
	}
	err := g.watchTask()
	g.ReapAll(func() { killAll(unix.SIGKILL) })
	return g.ended(began, err)
}

// awaitLeave waits until the attempt may begin. False: it may not.
func (g *guard) awaitLeave() (Told, bool) {
	late := time.NewTimer(g.orders.Patience)
	defer late.Stop()
	for {
		select {
		case <-g.asker.leave:
			return Told{}, true
		case <-g.asker.end:
			return Told{Cause: executor.Fenced, ExitCode: 125, Detail: "not started: its site has given it up"}, false
		case <-late.C:
			return Told{Cause: executor.Fenced, ExitCode: 125}, false
		case sig := <-g.calls:
			if isStop(sig) {
				return Told{Cause: executor.Stopped, ExitCode: 125, Detail: "not started: its container was stopped"}, false
			}
		}
	}
}

func isStop(sig os.Signal) bool { return sig == unix.SIGTERM || sig == unix.SIGINT }

// spareThreads are those that this process is given before there is a task ([sandbox.Guard]).
const spareThreads = 8

// start runs the command with what the container has: its folder, its output.
func (g *guard) start(command, env []string) error {
	file, err := watchdog.LookPath(command[0], env)
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return &watchdog.Trouble{Cause: err}
	}
	defer null.Close()
	if err = sandbox.Guard(spareThreads); err != nil {
		return &watchdog.Trouble{Cause: fmt.Errorf("guard this process: %w", err)}
	}
	g.Pid, err = syscall.ForkExec(file, command, &syscall.ProcAttr{
		Env: env, Sys: &syscall.SysProcAttr{Setsid: true}, Files: []uintptr{null.Fd(), 1, 2},
	})
	if err != nil {
		return watchdog.StartError(executor.Task{Command: command}, file, err)
	}
	offer(g.Pid)
	return nil
}

// offer has the kernel kill the task for memory rather than its guard.
func offer(pid int) {
	score := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
	b, err := os.ReadFile(score)
	if err != nil {
		return
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		_ = os.WriteFile(score, []byte(strconv.Itoa(min(n+100, 1000))), 0o600)
	}
}

// killAll signals every process of the container but this one. All of them are
// of our own user: nobody here has the capability to become another.
func killAll(sig unix.Signal) { _ = unix.Kill(-1, sig) }

// watchTask returns when the task's own process has ended, by itself or by us. An error
// says that nothing could be watched any more.
func (g *guard) watchTask() error {
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	defer alarm.close()
	stop, end := false, g.asker.end
	for {
		g.Reap()
		if g.Exited {
			return nil
		}
		act, wake := g.plan.Step(executor.Boottime(), g.asker.until.Load(), stop)
		switch act {
		case watchdog.Term:
			killAll(unix.SIGTERM)
			killAll(unix.SIGCONT)
		case watchdog.Kill:
			killAll(unix.SIGKILL)
		case watchdog.Rest:
		}
		if err = alarm.set(wake); err != nil {
			return err
		}
		select {
		case sig := <-g.calls:
			stop = stop || isStop(sig)
		case <-end:
			stop, end = true, nil
		case <-alarm.rings:
		}
	}
}

// ended says how.
func (g *guard) ended(began int64, failed error) Told {
	r := executor.Result{Cause: executor.Exited}
	g.plan.Explain(&r, executor.Task{Timeout: g.orders.Timeout}, watchdog.End{Status: g.Status, Why: stopped})
	if failed != nil {
		r = executor.Result{
			Cause: executor.Stopped, ExitCode: 137, Signal: int(unix.SIGKILL),
			Detail: "killed: its watchdog cannot go on: " + failed.Error(),
		}
	}
	if r.Cause != executor.Exited && r.ExitCode == 0 { // Kubernetes must not take it for a success
		r.ExitCode, r.Signal = 128+int(unix.SIGTERM), int(unix.SIGTERM)
	}
	return Told{
		Begun: true, Ran: time.Duration(executor.Boottime() - began),
		Cause: r.Cause, ExitCode: r.ExitCode, Signal: r.Signal, Detail: r.Detail,
	}
}
