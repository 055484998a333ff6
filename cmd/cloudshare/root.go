package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/daemon"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/devfed"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/jobcmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/keycmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/logincmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/membercmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/simcmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/sitecmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/statecmd"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/tokencmd"
)

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, s cli.Streams, getenv func(string) string) int {
	a := &cli.App{Streams: s, Getenv: getenv, Version: version}
	return a.Execute(ctx, newRoot(a), args)
}

// newRoot returns the command tree.
func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "cloudshare",
		Short: "Sites lend each other idle machines, fairly and without money",
		Long: `CloudShare lets independent sites lend each other idle machines, fairly and
without money or a central server. Every site runs one broker.

Exit codes: 0 ok, 1 error, 2 usage or a bad value, whoever finds it, 3 unreachable, 4 not found, 5 refused;
audit verify: 6 something differs, 7 nothing does, but it is not proven;
under --wait: 10 failed, 11 cancelled, 12 lost; 13: wait --timeout has passed.`,
		Example: `  cloudshare dev --sites 3                 # a federation on this machine
  cloudshare submit -- sh -c 'echo hello'  # a job of one task
  cloudshare jobs`,
	}
	commands := []*cobra.Command{
		daemon.Command(a), daemon.DebugCommand(a), devfed.Command(a), simcmd.Command(a),
		docsCommand(a), guideCommand(a), versionCommand(a),
	}
	commands = slices.Concat(commands, jobcmd.Commands(a), sitecmd.Commands(a), membercmd.Commands(a),
		tokencmd.Commands(a), logincmd.Commands(a), keycmd.Commands(a), statecmd.Commands(a))
	for _, c := range commands {
		if c.Name() == "audit" { // it asks a broker, and those below it read files
			c.AddCommand(statecmd.AuditCheck(a), statecmd.AuditExport(a), statecmd.AuditVerify(a))
		}
	}
	a.SetUpRoot(root, commands...)
	completer{a}.completeIDs(root)
	return root
}
