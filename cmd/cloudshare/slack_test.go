package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be a program that gives itself slack, as main does.
func TestMain(m *testing.M) {
	if os.Getenv("TELL_SLACK") != "" {
		setTimerSlack(os.Args[1:])
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		_, marked := os.LookupEnv(slackSet)
		fmt.Println(os.Args[1:], slack, err, marked)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A broker begins again with timers that may be late, once, and nothing that it starts
// sees how; any other command does not.
func TestGiveSlack(t *testing.T) {
	normal, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[[2]string]int{
		{"broker", "--bootstrap"}: max(normal, brokerSlack),
		{"jobs", "broker"}:        normal,
	} {
		cmd := exec.CommandContext(t.Context(), self, args[:]...)
		cmd.Env = append(os.Environ(), "TELL_SLACK=1")
		out, err := cmd.CombinedOutput()
		if told := fmt.Sprintln(args, want, error(nil), false); err != nil || string(out) != told {
			t.Errorf("%v: told %q, want %q: %v", args, out, told, err)
		}
	}
}
