package guard

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/cloudshare/cloudshare/executor"
)

// Verb is the argument with which the program is a guard; what follows is the
// task's command. With [Install] and a folder instead it is copied there, and the files of
// the task come, if it has orders that name some.
const (
	Verb    = "watchdog"
	Install = "--install"
)

// Main is the life of a guard, and returns its exit code: the task's, 128 and the
// signal's number for one that a signal ended.
func Main(args []string) int {
	if len(args) == 2 && args[0] == Install {
		err := install(args[1])
		if err == nil {
			err = fetch(os.Environ(), Work)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", Verb, err)
			return 1
		}
		return 0
	}
	if os.Getpid() != 1 {
		fmt.Fprintf(os.Stderr, "%s: this is the first process of a task's container, and starts nowhere else\n", Verb)
		return 2
	}
	// Whatever the task's environment says of these: it counts to the task's memory.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(12 << 20)
	runtime.GOMAXPROCS(2)
	t := guardTask(args, os.Environ())
	if err := os.WriteFile(told, t.encode(), 0o600); err != nil {
		fmt.Fprintf(os.Stderr, "%s: tell how the task ended: %v\n", Verb, err)
	}
	return t.ExitCode
}

// guardTask runs a command to its end.
func guardTask(command, environ []string) Told {
	text, env := split(environ)
	o, err := DecodeOrders(text)
	if err == nil && len(command) == 0 {
		err = errors.New("no command")
	}
	if err != nil {
		return notBegun(executor.Stopped, err.Error())
	}
	g := &guard{orders: o, asker: newAsker(o), env: env}
	return g.run(command)
}
