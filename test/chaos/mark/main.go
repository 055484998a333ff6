// Command mark is the task of the chaos tests: it runs for a while and leaves marks in
// a file that all attempts at all sites share.
//
//	mark [-for 3s] [-first 1s] [-beat 50ms] [-stubborn] [-hostile] [-files] [-exit 0 [-alone N]] FILE
//
// A mark is one line, one append with O_APPEND, so it is whole and in order:
//
//	WHAT JOB TASK ATTEMPT TOKEN SITE PID NANOSECONDS CODE
//
// WHAT is start (the first act), beat, term (TERM came), end (the last act) or left (of a process left behind);
// NANOSECONDS are CLOCK_BOOTTIME, one clock for all sites of one machine. An
// attempt without an end was killed; it ran at least until its last beat.
// A stubborn one does not end at TERM and goes on until it is killed. With
// -first, attempt 1 runs that long and exits with -exit, the next ones with 0; with -alone
// all tasks but that one exit with 0. A hostile
// one attacks what it reaches first, and leaves processes behind: see hostile.go. With -files
// it wants the file in.txt of its owner's, and leaves out.txt: see files.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exitMarks: the marks cannot be written, so the attempt must not pass for one.
const exitMarks = 99

func main() {
	length := flag.Duration("for", 3*time.Second, "how long to run")
	beat := flag.Duration("beat", 50*time.Millisecond, "between two marks")
	stubborn := flag.Bool("stubborn", false, "do not end at TERM")
	code := flag.Int("exit", 0, "exit code after the whole time")
	first := flag.Duration("first", 0, "how long attempt 1 runs, if not as long as others")
	alone := flag.String("alone", "", "the only task that exits with -exit")
	hostile := flag.Bool("hostile", false, "attack what is reached, and leave processes behind")
	takes := flag.Bool("files", false, "check in.txt, and leave out.txt")
	left := flag.Int("left", 0, "be one that process `PID` left behind")
	flag.Parse()
	switch {
	case *first == 0:
	case os.Getenv("CLOUDSHARE_ATTEMPT") == "1":
		*length = *first
	default:
		*code = 0
	}
	if *alone != "" && *alone != os.Getenv("CLOUDSHARE_TASK") {
		*code = 0
	}
	m, err := open(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitMarks)
	}
	switch {
	case *left > 0:
		m.linger(*left, *beat)
		return
	case *hostile && os.Getuid() == 0:
		fmt.Fprintln(os.Stderr, "mark: as root, -hostile would end everything on this machine: it is for tasks in sandboxes")
		os.Exit(exitMarks)
	case *hostile:
		m.attack()
	}
	if *takes {
		if err = takeFiles(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitMarks)
		}
	}
	os.Exit(m.live(*length, *beat, *stubborn, *code))
}

// marks writes one attempt's.
type marks struct {
	file *os.File
	who  string // all but the process
	pid  int
}

func open(path string) (*marks, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open marks: %w", err)
	}
	env := func(name string) string { return os.Getenv("CLOUDSHARE_" + name) }
	who := fmt.Sprintf("%s %s %s %s %s", env("JOB"), env("TASK"), env("ATTEMPT"), env("TOKEN"), env("SITE"))
	return &marks{f, who, os.Getpid()}, nil
}

// live runs and returns the exit code.
func (m *marks) live(length, beat time.Duration, stubborn bool, code int) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	m.put("start", 0)
	over, tick := time.After(length), time.NewTicker(beat)
	for {
		select {
		case <-tick.C:
			m.put("beat", 0)
		case <-term:
			m.put("term", 0)
			if !stubborn {
				return m.put("end", 128+int(syscall.SIGTERM))
			}
		case <-over:
			return m.put("end", code)
		}
	}
}

// put appends one mark and returns its code.
func (m *marks) put(what string, code int) int {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		os.Exit(exitMarks)
	}
	if _, err := fmt.Fprintf(m.file, "%s %s %d %d %d\n", what, m.who, m.pid, now.Nano(), code); err != nil {
		os.Exit(exitMarks)
	}
	return code
}
