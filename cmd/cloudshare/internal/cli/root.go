package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
			return unknownCommand(root, args[0])
		}
		return nil
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	addr := a.getenv("CLOUDSHARE_ADDR")
	if addr == "" {
		addr = DefaultAddr
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.Addr, "addr", addr, "a broker's `URL`, or unix:///PATH of its api.sock (environment: CLOUDSHARE_ADDR)")
	flags.StringVar(&a.Context, "context", "",
		"`NAME` of a broker, see cloudshare context (environment: CLOUDSHARE_CONTEXT)")
	flags.StringVar(&a.TokenFile, "token-file", "",
		"`FILE` with the token of that broker's site (else: CLOUDSHARE_API_TOKEN, or what dev keeps)")
	flags.StringVar(&a.CAFile, "ca-file", "",
		"`FILE` with the authority's certificate of an https broker (environment: CLOUDSHARE_CA_FILE; else the token's pin, or the system's)")
	flags.BoolVar(&a.Plain, "plain", false,
		"send the token to that broker over plain HTTP off loopback: inside a private network or a tunnel (environment: CLOUDSHARE_PLAIN=1)")
	flags.StringVarP(&a.Format, "output", "o", "table", "table, json or yaml")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkFormat(cmd); err != nil {
			return err
		}
		return a.chooseAddr(flags.Changed("addr"))
	}
	root.AddCommand(commands...)
	finish(root)
}

// unknownCommand says that there is no such command, and which one has nearly its name.
func unknownCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = max(1, len(name)/3) // letters that differ
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q: is %s meant?", name, near[0])
	}
	return fmt.Errorf("unknown command %q", name)
}

// PlainValue says of a value that is no number what is wanted, not who could not read it.
func PlainValue(err error) error {
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &value) || !errors.As(err, &number) {
		return err
	}
	want := "a whole number"
	switch number.Func {
	case "ParseUint":
		want += " from 0"
	case "ParseFloat":
		want = "a number"
	}
	if errors.Is(number, strconv.ErrRange) {
		want += " that is not so large"
	}
	return fmt.Errorf("invalid argument %q for \"--%s\" flag: must be %s", value.GetValue(), value.GetFlag().Name, want)
}

// finish gives every command the same manners: what cobra finds wrong is
// usage, what a command itself returns keeps its own code.
func finish(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return Usage("%w; see %s --help", PlainValue(err), c.CommandPath())
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
