package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Execute runs a command line and returns the exit code.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if text := Explain(err); text != "" {
		fmt.Fprintf(a.Err, "cloudshare: %s\n", text)
	}
	return CodeOf(err)
}

// SetUpRoot gives the command above all others their common flags and manners, and
// has it refuse commands that do not exist.
func (a *App) SetUpRoot(root *cobra.Command, commands ...*cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q", args[0])
		}
		return nil
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	addr := a.Getenv("CLOUDSHARE_ADDR")
	if addr == "" {
		addr = DefaultAddr
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.Addr, "addr", addr, "a broker's `URL` (environment: CLOUDSHARE_ADDR)")
	flags.StringVarP(&a.Format, "output", "o", "table", "table, json or yaml")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.checkFormat(cmd) }
	root.AddCommand(commands...)
	finish(root)
}

// finish gives every command the same manners: what cobra finds wrong is
// usage, what a command itself returns keeps its own code.
func finish(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return Usage("%w; see %s --help", err, c.CommandPath())
	})
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, list []string) error {
			if err := args(c, list); err != nil {
				return Usage("%w; see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
	cmd.DisableFlagsInUseLine = true
	for _, sub := range cmd.Commands() {
		finish(sub)
	}
}
