package local

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// TestOutboundLossIsNoFailure: a task whose network ends is no failure: one that waits is ended, one that has failed by
// that as quickly as it can is not blamed. The owner's next one has a network. What fails while all works is its own.
func TestOutboundLossIsNoFailure(t *testing.T) {
	o := besideWorld(t, usersHere()...)
	if o == nil {
		return
	}
	const connect = "exec 3<>/dev/tcp/" + worldAddress + "/" + worldPort + " && echo up && "
	for n, script := range []string{
		connect + "cat <&3",
		connect + "while [ $(wc -l </proc/net/route) -gt 1 ]; do :; done; exit 7",
		connect + "trap '' TERM; while :; do sleep 1; done",
	} {
		task := stranger(uint32(2*n+1), "site-1", script)
		o.begin(task)
		if got := o.firstLine(task); got != "up" {
			t.Fatalf("%q: %q", script, got)
		}
		if err := o.slotOf(task).stack.Kill(); err != nil {
			t.Fatal(err)
		}
		if r := o.end(task); r.Cause != executor.Orphaned || r.Detail != cutOff || r.Run <= 0 {
			t.Errorf("%q: %+v, want an orphan that is charged", script, r)
		}
		if got := o.said(stranger(uint32(2*n+2), "site-1", connect+":")); got != "up\n" {
			t.Errorf("afterwards: %q", got)
		}
	}
	if r := o.run(stranger(10, "site-1", connect+"exit 7")); r.Cause != executor.Exited || r.ExitCode != 7 {
		t.Errorf("a failure of its own: %+v", r)
	}
}

// TestLossWhileNoBrokerLooked: whoever ends a broker may end all that it has begun, stacks among it: that is a loss,
// and charged to nobody.
func TestLossWhileNoBrokerLooked(t *testing.T) {
	e := &ended{Result: executor.Result{Cause: executor.Orphaned, Detail: cutOff}}
	if e.unseen(false); e.Result.Cause != executor.Vanished || e.Result.Detail == cutOff {
		t.Errorf("got %+v, want one that is lost", e.Result)
	}
}

// TestStackThatFailsAtItsStart: a sandbox whose stack has not said that it works is given no task. One that began
// beside it was its owner's to pay, and after five it had failed.
func TestStackThatFailsAtItsStart(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{network: pair[0]}
	served := make(chan error)
	go func() { served <- s.serveOne(0, 1) }()
	if err := unix.Close(pair[1]); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, errNoNetwork) || s.stands {
		t.Errorf("a task is served without its network: %v", err)
	}
	if err := unix.Close(pair[0]); err != nil {
		t.Fatal(err)
	}
}
