package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// againEnv names the folder of what has to run again; unset, nothing does.
const againEnv = "TESTSUM_AGAIN"

// maxAgain bounds the tests of one command that may run again: more is no accident of a busy machine.
const maxAgain = 3

// command is one `go test -json`. System tests start other programs and judge them by the clock, while other stages
// take the machine's cores: what fails there is run once more, by itself.
type command struct {
	args   []string
	system bool
}

// invocation is how a command is run; in a file, so as to run the failed tests of another one alone.
type invocation struct {
	Dir  string   // "" = here
	Env  []string // nil = this process's
	Args []string
}

// keep leaves an invocation for cmd's failed tests in the folder, if they may have one.
func keep(cmd command, failed *summary, out io.Writer) bool {
	dir := os.Getenv(againEnv)
	tests := failed.tops()
	if dir == "" || !cmd.system || len(tests) == 0 || len(tests) > maxAgain || failed.grave {
		return false
	}
	wd, err := os.Getwd()
	if err != nil {
		return false
	}
	again := invocation{Dir: wd, Env: os.Environ(), Args: narrowed(cmd.args, tests, failed.badPackages)}
	text, err := json.Marshal(again)
	if err != nil {
		return false
	}
	file, err := os.CreateTemp(dir, "*.json")
	if err != nil {
		fmt.Fprintf(out, "keep what has to run again: %v\n", err)
		return false
	}
	_, err = file.Write(text)
	if err := file.Close(); err != nil {
		return false
	}
	fmt.Fprintf(out, "FAILED BESIDE OTHER WORK, TO RUN AGAIN ALONE: %s\n", strings.Join(tests, " "))
	return err == nil
}

// narrowed returns args with the tests and the packages alone that failed.
func narrowed(args, tests, packages []string) []string {
	var kept []string
	last := -1
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-run":
			i++
		case strings.HasPrefix(args[i], "./"):
			last = len(kept)
		default:
			kept = append(kept, args[i])
		}
	}
	for i, t := range tests {
		tests[i] = regexp.QuoteMeta(t)
	}
	more := append([]string{"-run", "^(" + strings.Join(tests, "|") + ")$"}, packages...)
	if last < 0 {
		return append(kept, more...)
	}
	return slices.Insert(kept, last, more...)
}

// runAgain runs all that dir has, one after the other, and says what passed now.
func runAgain(dir string, out io.Writer) int {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		fmt.Fprintln(out, "nothing has to run again")
		return 0
	}
	code := 0
	for _, file := range files {
		if err := runFile(file, out); err != nil {
			fmt.Fprintf(out, "FAILED TWICE: %s: %v\n", file, err)
			code = 1
		}
	}
	return code
}

func runFile(file string, out io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r invocation
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	fmt.Fprintln(out, "again, alone:", strings.Join(r.Args, " "))
	sum := newSummary(out)
	if err := runOne(r, sum); err != nil {
		return err
	}
	if !sum.ok() {
		return fmt.Errorf("%d tests passed, %d failed", sum.passed, sum.failed)
	}
	for _, t := range sum.passedTops {
		fmt.Fprintln(out, "FLAKY: failed beside other work, passed alone:", t)
	}
	return nil
}
