package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/client"
)

const defaultAddr = "http://127.0.0.1:7700"

// streams of the process; tests give others. Data goes to out, notes to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is what every command shares.
type app struct {
	streams
	getenv func(string) string
	addr   string // --addr
	format string // -o

	watcher *client.Client // of --watch, else nil
	over    bool           // what is watched will not change any more
	quiet   bool           // no notes
	outcome error          // of the job that is watched, once it has ended badly
	fresh   freshness      // of the state that is read
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, s streams, getenv func(string) string) int {
	a := &app{streams: s, getenv: getenv}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if text := explain(err); text != "" {
		fmt.Fprintf(s.err, "cloudshare: %s\n", text)
	}
	return codeOf(err)
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cloudshare",
		Short: "Sites lend each other idle machines, fairly and without money",
		Long: `CloudShare lets independent sites lend each other idle machines, fairly and
without money or a central server. Every site runs one broker.

Exit codes: 0 ok, 1 error, 2 usage or a bad value, whoever finds it, 3 unreachable, 4 not found, 5 refused;
under --wait: 10 failed, 11 cancelled, 12 lost; 13: wait --timeout has passed.`,
		Example: `  cloudshare dev --sites 3                 # a federation on this machine
  cloudshare submit -- sh -c 'echo hello'  # a job of one task
  cloudshare jobs`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addr := a.getenv("CLOUDSHARE_ADDR")
	if addr == "" {
		addr = defaultAddr
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.addr, "addr", addr, "a broker's `URL` (environment: CLOUDSHARE_ADDR)")
	flags.StringVarP(&a.format, "output", "o", "table", "table, json or yaml")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.checkFormat(cmd) }
	root.AddCommand(
		a.brokerCommand(), a.devCommand(), a.submitCommand(), a.runCommand(), a.logsCommand(), a.cancelCommand(), a.waitCommand(), a.rerunCommand(), a.eventsCommand(),
		a.policyCommand(), a.drainCommand(), a.resumeCommand(), a.leaveCommand(), a.versionCommand(), a.simCommand(),
		a.reportCommand(), a.exportCommand(), a.debugCommand(), a.docsCommand(), a.recoverCommand(), a.stateCommand(), a.zkCommand(),
	)
	for _, show := range []*cobra.Command{
		a.jobsCommand(), a.jobCommand(), a.tasksCommand(), a.whyCommand(), a.sitesCommand(), a.ledgerCommand(), a.queueCommand(), a.quotaCommand(), a.statusCommand(),
	} {
		root.AddCommand(a.watchable(a.readable(show)))
	}
	root.AddCommand(a.guideCommand())
	finish(root)
	a.completeIDs(root)
	return root
}

// finish gives every command the same manners: what cobra finds wrong is
// usage, what a command itself returns keeps its own code.
func finish(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return usage("%w; see %s --help", err, c.CommandPath())
	})
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, list []string) error {
			if err := args(c, list); err != nil {
				return usage("%w; see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
	cmd.DisableFlagsInUseLine = true
	for _, sub := range cmd.Commands() {
		finish(sub)
	}
}

// client of the broker at --addr.
func (a *app) client() (*client.Client, error) {
	if a.watcher != nil {
		return a.watcher, nil
	}
	c, err := client.New(a.addr)
	if err != nil {
		return nil, err
	}
	return a.fresh.ask(c)
}

// note tells people something beside the data.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}
