package local

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
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
	sources *sources
	thread  sideThread
	looks   sideThread // for looks at the disk: a thread that forks keeps no capability to see all
	clerk   *watchdog.Clerk
	torn    atomic.Bool // some line could not be written
	allCPUs unix.CPUSet // that we may use
	termed  int         // eventfd, readable after SIGTERM
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
	try := fs.Bool("try", false, "end once the sandbox is made")
	if err := fs.Parse(args); err != nil {
		return err
	}
	s := &supervisor{journal: os.NewFile(fdJournal, "journal"), share: *share, room: *room, cleanFor: *cleanFor}
	err := s.enter(*inside)
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

// open takes what the supervisor was given.
func (s *supervisor) open() (err error) {
	// All that was inherited, also what the broker itself was given by mistake.
	if err = sealFiles(); err != nil {
		return fmt.Errorf("keep files from tasks: %w", err)
	}
	if s.fence, err = watchdog.MapPage(fdFence); err != nil {
		return err
	}
	if err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	if s.termed, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("make eventfd: %w", err)
	}
	if s.sources, err = newSources(fdControl, s.termed); err != nil {
		return err
	}
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open null: %w", err)
	}
	if err = unix.SchedGetaffinity(0, &s.allCPUs); err != nil {
		return fmt.Errorf("read affinity: %w", err)
	}
	s.clerk = watchdog.NewClerk()
	watchdog.MakeThreads(spareThreads)
	if s.inside {
		_ = s.looks.do(func() error { return nil }) // made before any fork
	}
	s.catchTerm()
	if err = s.freshOutputs(); err != nil {
		return err
	}
	return os.MkdirAll(sandbox.WorkFolder, 0o700)
}

// planVar is how a supervisor is told its sandbox: tasks read its arguments, but not its
// environment.
const planVar = "CLOUDSHARE_SANDBOX_PLAN"

// enter makes the sandbox, and says where tasks work.
func (s *supervisor) enter(inside bool) (err error) {
	if inside {
		var p sandbox.Plan
		if p, err = sandbox.Decode(os.Getenv(planVar)); err != nil {
			return err
		}
		s.slot, s.work, s.inside, s.shares = ".", sandbox.Work, true, p.Share
		return p.Enter()
	}
	if s.slot, err = os.Getwd(); err != nil {
		return fmt.Errorf("find own slot: %w", err)
	}
	s.work = filepath.Join(s.slot, sandbox.WorkFolder)
	return nil
}

// sealFiles marks every open file but the standard three as closed on exec.
func sealFiles() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= fdControl {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// catchTerm turns SIGTERM, by which a later broker stops an adopted attempt,
// into something that can be polled. SIGINT and SIGHUP are not for us.
func (s *supervisor) catchTerm() {
	terms, others := make(chan os.Signal, 1), make(chan os.Signal, 1)
	// Caught, not ignored: tasks would inherit that. TERM is not lost among others.
	signal.Notify(terms, unix.SIGTERM)
	signal.Notify(others, s.caught()...)
	go func() {
		for range terms {
			_, _ = unix.Write(s.termed, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		}
	}()
}

// caught are the signals besides TERM that would end this process and do nothing so. In a
// sandbox its task may send any; what the runtime takes for a fault, the sandbox drops.
func (s *supervisor) caught() []os.Signal {
	list := []os.Signal{unix.SIGINT, unix.SIGHUP}
	if s.inside {
		list = append(list, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPWR, unix.SIGPIPE)
		const first, last = 34, 64 // of real time
		for sig := syscall.Signal(first); sig <= last; sig++ {
			list = append(list, sig)
		}
	}
	return list
}

// serve runs attempts until the broker is gone.
func (s *supervisor) serve() error {
	for !s.orphan {
		from, err := s.sources.wait(-1, watchdog.Never)
		if err != nil {
			return err
		}
		msg, err := s.receive()
		if err != nil {
			return err
		}
		off, n, ok := parseRun(msg)
		if !ok { // a stop that came too late; an attempt may stand behind it
			if msg == "" && from&fromTerm != 0 {
				drain(s.termed)
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
	raw := make([]byte, n)
	if _, err := s.journal.ReadAt(raw, off); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	l, ok := parseLine(raw)
	if !ok || l.Ask == nil {
		return errors.New("journal holds no task where one was announced")
	}
	a := &attempt{supervisor: s, asked: *l.Ask, name: l.Ask.Task.ID.String(), child: -1, askAt: watchdog.Never}
	r := a.run()
	drain(s.termed) // of this attempt, for certain: nobody gives another before its end is told
	if err := a.report(r); err != nil {
		return err
	}
	s.group.renew()
	return s.freshOutputs()
}

// recordAndSend records a line and tells the broker, in this order. Without a broker, or
// with a full disk, one of the two has to do.
func (s *supervisor) recordAndSend(l line) { s.send(s.record(l)) }

// record appends a line to the journal and returns its text.
func (s *supervisor) record(l line) []byte {
	text, err := l.text()
	s.write(text, err)
	return text
}

// recordLater leaves it to the clerk: the caller has a clock to look at.
func (s *supervisor) recordLater(l line) []byte {
	text, err := l.text()
	s.clerk.Do(func() { s.write(text, err) })
	return text
}

// write appends a text to the journal, or says why there is none.
func (s *supervisor) write(text []byte, err error) {
	if err == nil {
		_, err = s.journal.Write(text)
	}
	if err != nil {
		s.torn.Store(true)
		fmt.Fprintf(os.Stderr, "supervise: append to journal: %v\n", err)
	}
}

// send tells the broker a line.
func (s *supervisor) send(text []byte) {
	if len(text) > 0 && !s.orphan {
		_ = unix.Send(fdControl, text, unix.MSG_NOSIGNAL)
	}
}

// receive takes one packet, "" if none is there. It notes the broker's end.
func (s *supervisor) receive() (string, error) {
	n, _, err := unix.Recvfrom(fdControl, s.heard[:], unix.MSG_DONTWAIT)
	switch {
	case err == nil && n > 0:
		return string(s.heard[:n]), nil
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return "", nil
	case err == nil || errors.Is(err, unix.ECONNRESET):
		s.orphan = true
		s.sources.drop(fdControl) // it would be readable forever
		return "", nil
	}
	return "", fmt.Errorf("hear from broker: %w", err)
}

// drain empties an eventfd and says whether it was set.
func drain(fd int) bool {
	var buf [8]byte
	n, err := unix.Read(fd, buf[:])
	return err == nil && n == len(buf)
}

// freshOutputs makes the two output files of the next attempt, unless the last
// one wrote nothing and they can serve again: making a file costs more than
// running a small task.
func (s *supervisor) freshOutputs() (err error) {
	for i, name := range attempts.Streams {
		if s.out.Files[i] != nil {
			continue
		}
		if s.out.Files[i], err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|os.O_TRUNC, 0o600); err != nil {
			return fmt.Errorf("make output file: %w", err)
		}
	}
	return nil
}

// outputName names the file that keeps an attempt's output.
func outputName(name string, stream int) string { return name + "." + attempts.Streams[stream] }

// logPath returns where an attempt's output stays after its end.
func logPath(dir, name string, stream int) string {
	return filepath.Join(dir, "logs", outputName(name, stream))
}
