package main

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// lingers is how often what is left behind forks at most: it ends by itself some day if nobody ends it, long after
// an overlap was seen.
const lingers = 600

// fatal are signals that end or stop a program that does not see to them.
var fatal = []syscall.Signal{
	syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGKILL,
}

// attack does what a task must not be able to do to others: it ends and stops everything, and who watches it by each
// signal that ends or stops a program. Then it leaves a chain of processes behind, each of which forks the next.
func (m *marks) attack() {
	m.put("start", 0) // it began, should it be ended by this
	for _, victim := range []int{-1, 1, os.Getppid()} {
		for _, sig := range fatal {
			_ = syscall.Kill(victim, sig) // what it may not reach is refused, as it should be
		}
	}
	m.leave(m.pid, lingers)
}

// linger is one process of the chain: it ignores what can be ignored, leaves marks for a while and forks the next.
func (m *marks) linger(of int, beat time.Duration) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	m.pid = of
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for range 3 {
		<-tick.C
		m.put("left", 0)
	}
	if n, err := strconv.Atoi(os.Getenv("LINGERS")); err == nil && n > 0 {
		m.leave(of, n-1)
	}
}

// leave starts a process of the chain in a session of its own.
func (m *marks) leave(of, n int) {
	cmd := exec.Command("/proc/self/exe", "-left", strconv.Itoa(of), m.file.Name())
	cmd.Env = append(os.Environ(), "LINGERS="+strconv.Itoa(n))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_ = cmd.Start() // without room for a process there is none to leave
}
