// Command testsum runs `go test -json` commands one after the other, prints what a
// reader needs (one line a package, the output of what failed) and ends with
// one line that shows that tests ran: "N passed, N failed, N skipped".
//
// Usage: testsum -- go test -json … [-- go test -json …] [--system go test -json …]
//
// It exits 1 when a command failed, a test failed, or none ran at all. Up to three failed
// tests of a --system command are left, not failed, where TESTSUM_AGAIN names a folder:
//
//	testsum again FOLDER
//
// runs them once more, by themselves, and exits 1 when one fails again. Tests that raced,
// panicked or did not end get no second run.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "again" {
		os.Exit(runAgain(os.Args[2], os.Stdout))
	}
	cmds := split(os.Args[1:])
	if len(cmds) == 0 {
		fmt.Fprintln(os.Stderr, "usage: testsum -- go test -json PACKAGES [-- COMMAND …]")
		os.Exit(2)
	}
	os.Exit(run(cmds, os.Stdout))
}

// run executes all commands even when one fails, so that one run shows every fault.
func run(cmds []command, out io.Writer) int {
	began := time.Now()
	all, broken := newSummary(out), false
	for _, cmd := range cmds {
		sum := newSummary(out)
		err := runOne(invocation{Args: cmd.args}, sum)
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", cmd.args[0], err)
		}
		if (err != nil || !sum.clean()) && !keep(cmd, sum, out) {
			broken = true
		}
		all.add(sum)
	}
	all.close(time.Since(began))
	if broken || all.passed == 0 {
		return 1
	}
	return 0
}

func runOne(r invocation, sum *summary) error {
	cmd := exec.Command(r.Args[0], r.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.Dir, r.Env, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	readErr := sum.read(stdout)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return readErr
}

// split cuts the arguments into commands at each "--" and "--system".
func split(args []string) []command {
	var cmds []command
	for _, a := range args {
		switch {
		case a == "--" || a == "--system":
			cmds = append(cmds, command{system: a == "--system"})
		case len(cmds) > 0:
			cmds[len(cmds)-1].args = append(cmds[len(cmds)-1].args, a)
		default:
			return nil
		}
	}
	for _, c := range cmds {
		if len(c.args) == 0 {
			return nil
		}
	}
	return cmds
}
