package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// TestStackThatHangsIsNoticed: a task that waits beside a stack that hangs is ended, and no failure, as if that had
// died.
func TestStackThatHangsIsNoticed(t *testing.T) {
	hang(t, 5*time.Second, "cat <&3", usersHere()...)
}

// TestFailureBesideAHungStack: a task that has failed by its network before that is known to hang is not blamed.
func TestFailureBesideAHungStack(t *testing.T) {
	hang(t, 12*time.Second, "while timeout 5 getent hosts far.example >&2; do :; done; exit 7", os.Getuid())
}

// hang has a stack hang beside a task that has a connection. The owner's next one has a network, and nothing is left of
// the old one.
func hang(t *testing.T, bound time.Duration, script string, users ...int) {
	t.Helper()
	o := besideWorldWith(t, func(c *Config) { c.hangFor = bound }, users...)
	if o == nil {
		return
	}
	const connect = "exec 3<>/dev/tcp/" + worldAddress + "/" + worldPort + " && echo up && "
	task := stranger(1, "site-1", connect+script)
	o.begin(task)
	if got := o.firstLine(task); got != "up" {
		t.Fatalf("%q", got)
	}
	if err := unix.Kill(o.slotOf(task).stack.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if r := o.end(task); r.Cause != executor.Orphaned || r.Detail != cutOff || r.Run <= 0 {
		t.Errorf("%+v, want an orphan that is charged", r)
	}
	awaitStacks(t, 0)
	if got := o.said(stranger(2, "site-1", connect+":")); got != "up\n" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestStackThatHangsServesNobody: a task is not begun beside one that has not answered for a while, and asked is only
// one of which nothing was heard just now.
func TestStackThatHangsServesNobody(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	s := &supervisor{network: pair[0], stands: true, pulse: pulse{bound: time.Hour}}
	asked := func() (n int) {
		var said [16]byte
		for {
			if _, _, err := unix.Recvfrom(pair[1], said[:], unix.MSG_DONTWAIT); err != nil {
				return n
			}
			n++
		}
	}
	s.heardStack(executor.Boottime())
	if !s.stackAnswers() || asked() != 0 {
		t.Error("one that has just said something is asked, or not trusted")
	}
	s.pulse.askAt = 0
	if s.askStack(executor.Boottime()) || asked() != 1 {
		t.Error("one of which nothing was heard is not asked, or hangs at once")
	}
	if err = unix.Send(pair[1], []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if !s.stackAnswers() || s.pulse.owed != 0 {
		t.Error("an answer is none")
	}
	s.pulse.bound, s.pulse.askAt = 3*time.Millisecond, 0
	if s.stackAnswers() || asked() != asksInBound {
		t.Error("one that does not answer is trusted")
	}
	if err = unix.Send(pair[1], []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err = s.serveOne(0, 1); !errors.Is(err, errNoNetwork) {
		t.Errorf("a task is served beside one that hung: %v", err)
	}
}

// TestSuspendedStackOwesOneAnswer: what stood still together with its supervisor, for however long, does not hang.
func TestSuspendedStackOwesOneAnswer(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	s := &supervisor{network: pair[0], pulse: pulse{bound: hangBound}}
	now := int64(time.Hour)
	for n := range asksInBound {
		if s.askStack(now) {
			t.Errorf("it hangs after %d questions, a day after each other", n)
		}
		now += int64(24 * time.Hour)
	}
	if !s.askStack(now) {
		t.Error("it does not hang, though it has answered none of all")
	}
}

// TestHungStackOfAdoptedAttemptGoes: a stack that hangs goes with its sandbox also if a later broker has adopted that,
// or found it ended, and the attempt has ended well.
func TestHungStackOfAdoptedAttemptGoes(t *testing.T) {
	if !onMachine(t, os.Getuid()) {
		return
	}
	makeWorld(t)
	share := t.TempDir()
	if err := os.Chmod(share, 0o777); err != nil {
		t.Fatal(err)
	}
	o := outboundHandlerWith(t, func(c *Config) { c.Sandbox.Share = []string{share} })
	if o == nil {
		return
	}
	for n, late := range []bool{false, true} {
		gate := filepath.Join(share, []string{"first", "second"}[n])
		task := stranger(uint32(n+1), "site-1", "echo up; until [ -e "+gate+" ]; do sleep 0.05; done")
		o.begin(task)
		if got := o.firstLine(task); got != "up" {
			t.Fatalf("%q", got)
		}
		s, cfg := o.slotOf(task), o.cfg
		if err := unix.Kill(s.stack.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		open := func() {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if late { // it has ended when it is found
			open()
			awaitSupervisors(t, cfg.Dir)
		}
		var states []executor.State
		o, states = adopted(t, cfg)
		var r executor.Result
		if open(); late {
			r = *states[len(states)-1].Ended
		} else {
			r = o.end(task)
		}
		if r.Cause != executor.Exited || r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
		awaitStacks(t, 0)
	}
}
