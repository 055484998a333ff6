package local

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Files that a supervisor inherits besides the standard three.
const (
	fdControl = 3 + iota // socket to the broker, packets
	fdFence              // the shared fence
	fdJournal            // the slot's journal, locked as long as we live
	fdGroups             // in a sandbox, the folder of its cgroups, if it has any
)

// maxPacket bounds what handler and supervisor say to each other in one
// packet; tasks are not in it, they stand in the journal.
const maxPacket = 64 << 10

// supervisor owns one attempt at a time. One goroutine does it all; the Go
// scheduler has nothing else to do in this process.
type supervisor struct {
	slot    string // the slot's folder, our working directory
	journal *os.File
	fence   *watchdog.Page
	group   *group
	sources *watchdog.Sources
	thread  sideThread
	looks   sideThread // for looks at the disk: a thread that forks keeps no capability to see all
	clerk   *watchdog.Clerk
	torn    atomic.Bool   // some line could not be written
	allCPUs unix.CPUSet   // that we may use
	termed  watchdog.Bell // rings after SIGTERM
	null    *os.File
	out     watchdog.Output // empty between attempts
	heard   [4 << 10]byte   // room for one packet
	orphan  bool            // the broker is gone
	// work is the private directory, as tasks know it.
	work string
	// inside: it is the first process of a sandbox, shares are the folders that it shows.
	inside   bool
	shares   []string
	share    int64         // MiB of memory per core for an attempt that asks for none, 0 = no limit
	cleanFor time.Duration // bound of cleaning up, in a sandbox
	room     int64         // bytes of scratch, 0 = a share of what is free, noScratch = no bound
	network  int           // socket to the process that has the sandbox's network, 0 = none
	stands   bool          // that process has said that it works
	pulse    pulse         // of that process
}

// Supervise is the life of a supervisor process; args is what follows
// "supervise" on the command line. It returns the exit code.
func Supervise(args []string) int {
	// A supervisor must stay small: there is one for every running attempt.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(32 << 20)
	unix.Umask(0o022)
	if err := supervise(args); err != nil {
		fmt.Fprintf(os.Stderr, "supervise: %v\n", err)
		return 1
	}
	return 0
}

func supervise(args []string) error {
	fs := flag.NewFlagSet("supervise", flag.ContinueOnError)
	kill := fs.String("kill", "", "cgroup (v2) for the attempt's processes")
	mem := fs.String("memory", "", "cgroup that limits memory")
	v2 := fs.Bool("v2", false, "the memory cgroup is of v2")
	cpu := fs.Bool("cpu", false, "the cgroup for the attempt's processes limits processor time")
	pids := fs.Int64("pids", 0, "processes and threads at most in the cgroup for the attempt's processes, 0 = no bound")
	disks := fs.String("io", "", "disks and their io.max in the cgroup for the attempt's processes, \"\" = no bound")
	share := fs.Int64("share", 0, "MiB of memory per core for an attempt that asks for none, 0 = no limit")
	room := fs.Int64("scratch", noScratch, "bytes that an attempt may have on the disk, 0 = a share of what is free, less = no bound")
	cleanFor := fs.Duration("clean", cleanBound, "how long what an attempt has left in a sandbox keeps its end from being told")
	inside := fs.Bool("sandbox", false, "be the first process of the sandbox that "+planVar+" says")
	network := fs.Int("network", 0, "the socket to the process that has the sandbox's network, 0 = it has none")
	hangs := fs.Duration("hangs", hangBound, "how long that process may owe an answer")
	try := fs.Bool("try", false, "end once the sandbox is made")
	if err := fs.Parse(args); err != nil {
		return err
	}
	s := &supervisor{journal: os.NewFile(fdJournal, "journal"), share: *share, room: *room, cleanFor: *cleanFor}
	s.network, s.pulse.bound = *network, *hangs
	err := s.enter(*inside, *try)
	if *try {
		return err
	}
	if err == nil {
		err = s.open()
	}
	if err == nil {
		s.group = newGroup(*kill, *mem, *v2, *cpu, *pids, parseIO(*disks))
		defer s.leaveGroups()
		s.record(line{Up: &served{}})
		err = s.serve()
	}
	if err != nil {
		s.resign(err)
	}
	return err
}

// resign says that this supervisor begins nothing any more: an attempt that it was
// given and has not ended never ran.
func (s *supervisor) resign(err error) {
	if s.torn.Load() {
		return // the journal does not show what has run
	}
	why := err.Error()
	s.recordAndSend(line{Sick: &why})
}

// leaveGroups removes the groups; the thread that is in one leaves it first.
func (s *supervisor) leaveGroups() {
	if !s.group.joined {
		s.group.close()
		return
	}
	_ = s.thread.do(func() error { // nothing can fail that matters
		s.group.close()
		return nil
	})
}

// planVar is how a supervisor is told its sandbox: tasks read its arguments, but not its
// environment.
const planVar = "CLOUDSHARE_SANDBOX_PLAN"

// enter makes the sandbox, and says where tasks work.
func (s *supervisor) enter(inside, try bool) (err error) {
	if inside {
		var p sandbox.Plan
		if p, err = sandbox.Decode(os.Getenv(planVar)); err != nil {
			return err
		}
		s.slot, s.work, s.inside, s.shares = ".", sandbox.Work, true, p.Share
		if err = s.joinNetwork(try); err != nil {
			return fmt.Errorf("make a sandbox: give it a network: %w", err)
		}
		return p.Enter()
	}
	if s.slot, err = os.Getwd(); err != nil {
		return fmt.Errorf("find own slot: %w", err)
	}
	s.work = filepath.Join(s.slot, sandbox.WorkFolder)
	return nil
}

// serve runs attempts until the broker is gone.
func (s *supervisor) serve() error {
	for !s.orphan {
		from, err := s.sources.Wait(watchdog.Never)
		if err != nil {
			return err
		}
		msg, err := s.receive()
		if err != nil {
			return err
		}
		off, n, ok := parseRun(msg)
		if !ok { // a stop that came too late; an attempt may stand behind it
			if msg == "" && from&watchdog.FromSignal != 0 {
				s.termed.Drain()
			}
			continue
		}
		// A TERM by now is for this attempt: a later broker knows it already.
		if err := s.serveOne(off, n); err != nil {
			return err
		}
	}
	return nil
}

// parseRun reads "run OFFSET LENGTH", the place of an attempt in the journal.
func parseRun(msg string) (off, n int64, ok bool) {
	place, ok := strings.CutPrefix(msg, "run ")
	first, second, _ := strings.Cut(place, " ")
	off, err1 := strconv.ParseInt(first, 10, 64)
	n, err2 := strconv.ParseInt(second, 10, 64)
	return off, n, ok && err1 == nil && err2 == nil
}

// serveOne runs the attempt that stands in the journal at off.
func (s *supervisor) serveOne(off, n int64) error {
	if off < 0 || n <= 0 || n > maxLine {
		return fmt.Errorf("run of %d bytes at %d", n, off)
	}
	if err := s.awaitNetwork(); err != nil || s.isCutOff() || !s.stackAnswers() {
		return errors.Join(errNoNetwork, err)
	}
	raw := make([]byte, n)
	if _, err := s.journal.ReadAt(raw, off); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	l, ok := parseLine(raw)
	if !ok || l.Ask == nil {
		return errors.New("journal holds no task where one was announced")
	}
	a := newAttempt(s, l.Ask)
	r := a.run()
	s.termed.Drain() // of this attempt, for certain: nobody gives another before its end is told
	if err := a.report(r); err != nil {
		return err
	}
	s.group.renew()
	return s.freshOutputs()
}

// outputName names the file that keeps an attempt's output.
func outputName(name string, stream int) string { return name + "." + attempts.Streams[stream] }

// logPath returns where an attempt's output stays after its end.
func logPath(dir, name string, stream int) string {
	return filepath.Join(dir, "logs", outputName(name, stream))
}
