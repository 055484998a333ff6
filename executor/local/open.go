package local

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

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
	if err = s.openSources(); err != nil {
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

// openSources has the broker and SIGTERM wake the loop.
func (s *supervisor) openSources() (err error) {
	if s.sources, err = watchdog.NewSources(); err != nil {
		return err
	}
	if s.termed, err = s.sources.Bell(watchdog.FromSignal); err != nil {
		return err
	}
	return s.sources.Add(fdControl, watchdog.FromHandler)
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
			s.termed.Ring()
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
