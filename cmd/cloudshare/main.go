// Command cloudshare is the broker, the command line of its API, and `dev`, a
// whole federation on one machine. Only this command and its internal packages read
// flags, configuration files and the environment; nothing imports them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	if code, yes := supervise(os.Args[1:]); yes {
		os.Exit(code)
	}
	setTimerSlack(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv)
	stop()
	os.Exit(code)
}
