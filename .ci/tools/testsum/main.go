// Command testsum runs `go test -json` commands one after the other, prints what a
// reader needs (one line a package, the output of what failed) and ends with
// one line that shows that tests ran: "N passed, N failed, N skipped".
//
// Usage: testsum [-v] -- go test -json … [-- go test -json …]
//
// It exits 1 when a command failed, a test failed, or none ran at all.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

func main() {
	cmds := split(os.Args[1:])
	if len(cmds) == 0 {
		fmt.Fprintln(os.Stderr, "usage: testsum -- go test -json PACKAGES [-- COMMAND …]")
		os.Exit(2)
	}
	os.Exit(run(cmds, os.Stdout))
}

// run executes all commands even when one fails, so that one run shows every fault.
func run(cmds [][]string, out io.Writer) int {
	began := time.Now()
	sum, broken := newSummary(out), false
	for _, args := range cmds {
		if err := runOne(args, sum); err != nil {
			fmt.Fprintf(out, "%s: %v\n", args[0], err)
			broken = true
		}
	}
	sum.close(time.Since(began))
	if broken || !sum.ok() {
		return 1
	}
	return 0
}

func runOne(args []string, sum *summary) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
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

// split cuts the arguments into commands at each "--".
func split(args []string) [][]string {
	var cmds [][]string
	for _, a := range args {
		switch {
		case a == "--":
			cmds = append(cmds, nil)
		case len(cmds) > 0:
			cmds[len(cmds)-1] = append(cmds[len(cmds)-1], a)
		default:
			return nil
		}
	}
	for _, c := range cmds {
		if len(c) == 0 {
			return nil
		}
	}
	return cmds
}
