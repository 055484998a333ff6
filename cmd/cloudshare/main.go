// Command cloudshare is the broker, the command line of its API, and `dev`, a
// whole federation on one machine. It is the only package that reads flags,
// configuration files and the environment; nothing imports it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "dev"

func main() {
	if code, yes := supervise(os.Args[1:]); yes {
		os.Exit(code)
	}
	giveSlack(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Getenv)
	stop()
	os.Exit(code)
}
