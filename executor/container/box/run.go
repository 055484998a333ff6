package box

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/plan"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// run starts the task and sees it to its end: when run returns, no process is
// left but this one.
func (b *boxed) run() executor.Result {
	if boot := watchdog.BootID(); boot != b.fence.Boot() {
		return watchdog.NotBegun(&watchdog.Trouble{Cause: errors.New("the container engine runs on another machine than its broker")})
	}
	if err := b.takeFiles(); err != nil { // before any look at the fence
		return watchdog.NotBegun(err)
	}
	b.watch = &watchdog.Watch{
		Task: b.order.Task, Grace: b.order.Grace, Fence: b.fence, Link: b, Sources: b.sources,
		Out: &b.out, MaxLog: b.order.MaxLog, Clerk: b.clerk,
	}
	return b.watch.Run(b.start)
}

// spareThreads are those that this process is given before there is a task ([sandbox.Guard]).
const spareThreads = 6

// worse is by how much of the memory the kernel kills the task rather than this process, in thousandths.
const worse = 500

func (b *boxed) start() error {
	t := b.order.Task
	env, err := watchdog.Environ(t, Work, b.order.Image.Env...)
	if err != nil {
		return err
	}
	if len(t.Command) == 0 {
		return errors.New("no command given, and the image has none")
	}
	path := os.Args[0] // this program is mounted there
	if !plan.Is(t.Command) {
		if path, err = watchdog.LookPath(t.Command[0], env); err != nil {
			return err
		}
	}
	return b.watch.ForkInside(&watchdog.Process{
		File: path, Env: env, Dir: b.order.Image.folder(), Out: [2]uintptr{b.out.Files[0].Fd(), b.out.Files[1].Fd()},
	}, worse, func() error { return sandbox.Guard(spareThreads) })
}

// folder is where the task begins.
func (i *ImageParts) folder() string {
	if i.WorkingDir == "/" {
		return Work
	}
	return cmp.Or(i.WorkingDir, Work)
}

// Begun implements watchdog.Link.
func (b *boxed) Begun() {
	begun := line{Run: &Begun{At: b.watch.Started}}
	b.clerk.Do(func() { b.writeWord(begun) })
}

// Due implements watchdog.Link.
func (b *boxed) Due(int64) int64 { return watchdog.Never }

// Heard implements watchdog.Link: the fifo has the reason why the end is asked for.
func (b *boxed) Heard(from watchdog.Source) {
	if from&watchdog.FromHandler == 0 {
		return
	}
	buf := make([]byte, 4<<10)
	n, _ := unix.Read(b.stops, buf)
	for line := range bytes.Lines(buf[:max(n, 0)]) {
		why := strings.TrimSuffix(string(line), "\n")
		if bound, over := strings.CutPrefix(why, overMark); over {
			b.watch.GoneOver(bound)
			continue
		}
		b.watch.Stop(why)
	}
}

// Ended implements watchdog.Link.
func (b *boxed) Ended(e *watchdog.End) {
	e.OOM, e.MemMiB, e.Group = oomKilled(), b.order.MemMiB, watchdog.ContainerUsage()
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
// may be able to, or opens it up, and tells the end.
func (b *boxed) report(r executor.Result) {
	b.clerk.Flush()
	for i := range b.out.Files {
		b.out.Finish(i, b.order.MaxLog)
	}
	if b.order.Task.Outputs.Kept(r) {
		openUp(Work)
	} else {
		empty(Work)
	}
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
