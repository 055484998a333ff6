package local

import (
	"io"
	"math"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// tellAfter is how long a process runs before the broker hears of its start: of a
// shorter one it hears with the end. To hear of a start costs a broker as much as of
// an end.
const tellAfter = int64(5 * time.Millisecond)

// Begun implements watchdog.Link.
func (a *attempt) Begun() {
	a.word = a.recordLater(line{Run: &begun{Name: a.name, Pid: a.Pid, At: a.Started}})
	a.tell = a.Began + tellAfter
}

// Due implements watchdog.Link: what a signal meant, the start, and a look at the disk.
func (a *attempt) Due(now int64) (next int64) {
	if now >= a.askAt && a.isStopped(now) {
		a.Stop("")
	}
	a.seeNetwork(now)
	if over := a.scratch.look(now); over != "" {
		a.over = true
		a.GoneOver(over)
	}
	if now >= a.tell {
		a.send(a.word)
		a.word, a.tell = nil, watchdog.Never
	}
	return min(a.tell, a.askAt)
}

// Heard implements watchdog.Link: what the broker says, or a signal that may be its.
func (a *attempt) Heard(from watchdog.Source) {
	if from&watchdog.FromSignal != 0 && a.termed.Drain() {
		if a.askAt = a.askedAt + askPause; !a.inside {
			a.signalled = true
			a.Stop("")
		}
	}
	if from&watchdog.FromHandler == 0 {
		return
	}
	msg, err := a.receive()
	if err != nil {
		a.orphan = true
	}
	if why, ok := strings.CutPrefix(msg, "stop "+a.name+" "); ok {
		a.told = true
		a.Stop(why)
	}
}

// Ended implements watchdog.Link.
func (a *attempt) Ended(e *watchdog.End) {
	a.stray = a.signalled && !a.told && !a.isStopped(executor.Boottime())
	a.oom = a.group.oomKilled()
	e.Group = a.group.used()
	e.OOM, e.MemMiB, e.Unasked = a.oom, a.memLimit(), a.ours && !a.told
}

// signal signals all of the attempt's processes.
func (a *attempt) signal(sig unix.Signal) {
	if !a.inside && !a.Exited { // else that number may be another's by now
		_ = unix.Kill(-a.Pid, sig)
	}
	switch {
	case sig == unix.SIGKILL:
		a.killAll()
	case a.inside || sig != unix.SIGCONT: // to read the table of processes is dear
		a.signalAll(sig)
	}
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
			a.told = true
			a.Stop(l.Stop.Why)
			return true
		}
	}
	return err != nil // rather end it than never
}
