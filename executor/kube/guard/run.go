package guard

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/plan"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/staging"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// guard is the work on its only attempt.
type guard struct {
	orders Orders
	env    []string // of the task
	asker  *asker
	calls  calls
	watch  *watchdog.Watch
}

var _ watchdog.Link = (*guard)(nil)

// run returns when the task has ended: no process is left then but this one.
func (g *guard) run(command []string) Told {
	g.calls = catchCalls()
	if g.orders.Free {
		return g.watchTask(command)
	}
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
	return g.watchTask(command)
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
			return notBegun(executor.Fenced, "not started: its site has given it up"), false
		case <-late.C:
			return notBegun(executor.Fenced, ""), false
		case sig := <-g.calls.outside:
			if isStop(sig) {
				return notBegun(executor.Stopped, "not started: "+stopped), false
			}
		}
	}
}

// watchTask runs the task, which may begin, to its end.
func (g *guard) watchTask(command []string) Told {
	sources, err := watchdog.NewSources()
	if err == nil {
		err = g.calls.wake(sources, g.asker.end)
	}
	if err != nil {
		return ended(watchdog.NotBegun(&watchdog.Trouble{Cause: err}))
	}
	g.watch = &watchdog.Watch{
		Task:  executor.Task{Command: command, Timeout: g.orders.Timeout, Fence: g.asker.until.Load()},
		Grace: g.orders.Grace, Fence: &g.asker.until, Link: g, Sources: sources, Bells: true,
	}
	r := g.watch.Run(g.start)
	return g.sendFiles(ended(r), r)
}

// spareThreads are those that this process is given before there is a task ([sandbox.Guard]).
const spareThreads = 8

// worse is by how much of the memory the kernel kills the task rather than its guard, in thousandths.
const worse = 100

// start runs the command with what the container has: its folder, its output.
func (g *guard) start() error {
	if f := g.orders.Files; f != nil && f.Fetch {
		if err := staging.TakeOver(Work); err != nil {
			return &watchdog.Trouble{Cause: err}
		}
	}
	file := Program
	if !plan.Is(g.watch.Task.Command) {
		var err error
		if file, err = watchdog.LookPath(g.watch.Task.Command[0], g.env); err != nil {
			return err
		}
	}
	return g.watch.ForkInside(&watchdog.Process{
		File: file, Env: g.env, Out: [2]uintptr{1, 2},
	}, worse, func() error { return sandbox.Guard(spareThreads) })
}

// Begun implements watchdog.Link: the container's state says so.
func (g *guard) Begun() {}

// Due implements watchdog.Link: others ask the handler.
func (g *guard) Due(int64) int64 { return watchdog.Never }

// Heard implements watchdog.Link.
func (g *guard) Heard(from watchdog.Source) {
	if from&watchdog.FromChild != 0 {
		g.calls.child.Drain()
	}
	if from&watchdog.FromSignal != 0 && g.calls.stop.Drain() {
		g.watch.Stop(stopped)
	}
}

// Ended implements watchdog.Link: what the kernel killed for memory says the kubelet.
func (g *guard) Ended(e *watchdog.End) { e.Group = watchdog.ContainerUsage() }

// ended says how.
func ended(r executor.Result) Told {
	if r.Started.IsZero() {
		t := notBegun(r.Cause, r.Detail)
		t.ExitCode = cmp.Or(r.ExitCode, t.ExitCode)
		return t
	}
	if r.Cause != executor.Exited && r.ExitCode == 0 { // Kubernetes must not take it for a success
		r.ExitCode, r.Signal = 128+int(unix.SIGTERM), int(unix.SIGTERM)
	}
	return Told{
		Begun: true, Ran: r.Run, Cause: r.Cause, ExitCode: r.ExitCode, Signal: r.Signal, Detail: r.Detail,
		Usage: r.Usage,
	}
}

// notBegun says why no process of the task ran.
func notBegun(cause executor.Cause, why string) Told {
	return Told{Cause: cause, ExitCode: 125, Detail: why}
}
