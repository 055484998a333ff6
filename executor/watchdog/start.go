package watchdog

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Process is a task's own process before its start.
type Process struct {
	File string // the program
	Env  []string
	Dir  string     // "" = the watchdog's own
	Out  [2]uintptr // stdout, stderr
	Null uintptr    // open for reading
	Attr syscall.SysProcAttr
}

// Fork starts the task's process in a session of its own.
func (w *Watch) Fork(p *Process) (err error) {
	p.Attr.Setsid = true
	if w.child = -1; !w.Bells {
		p.Attr.PidFD = &w.child
	}
	w.Started, w.Began = time.Now(), executor.Boottime()
	w.Pid, err = syscall.ForkExec(p.File, w.Task.Command, &syscall.ProcAttr{
		Dir: p.Dir, Env: p.Env, Sys: &p.Attr, Files: []uintptr{p.Null, p.Out[0], p.Out[1]},
	})
	return err
}

// ForkInside starts the task from the first process of its container, which is the same user: it closes itself to the
// task before, and guard refuses the task what would hinder it. worse is by how much the kernel kills the task rather
// than its watchdog, which lies in the same limit of memory.
func (w *Watch) ForkInside(p *Process, worse int, guard func() error) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return &Trouble{err}
	}
	defer null.Close()
	p.Null = null.Fd()
	defer worsen(worse)() // opened first: what is not dumpable may not open it
	if err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return &Trouble{fmt.Errorf("close this process to others: %w", err)}
	}
	if err = guard(); err != nil {
		return &Trouble{fmt.Errorf("guard this process: %w", err)}
	}
	if err = w.Fork(p); err != nil {
		return StartError(w.Task, p.File, err)
	}
	return nil
}

// mostScore is the kernel's highest score for memory.
const mostScore = 1000

// worsen raises this process's score for memory, which what it starts inherits, until back is called.
func worsen(by int) (back func()) {
	score, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return func() {}
	}
	var text [16]byte
	n, _ := score.Read(text[:])
	was, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err == nil {
		_, _ = score.WriteString(strconv.Itoa(min(was+by, mostScore)))
	}
	return func() {
		if err == nil {
			_, _ = score.WriteString(strconv.Itoa(was))
		}
		score.Close()
	}
}
