package logincmd

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func contextCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Names for the brokers that you ask", Args: cobra.NoArgs,
		Example: "  cloudshare context add lab-a --addr https://broker.lab-a.example:7700\n  cloudshare context use lab-a",
		Long: `Give names to the brokers that you ask, of one federation or of several. The other commands ask the current one, or
that of --context or CLOUDSHARE_CONTEXT; an address (--addr, CLOUDSHARE_ADDR) counts before a name of the same kind. They
stand in ~/.config/cloudshare/contexts.json, with the logins.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(a), useCommand(a), addCommand(a), removeCommand(a))
	return cmd
}

func listCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the names, and which is the current one", Args: cobra.NoArgs,
		Example: "  cloudshare context list",
		RunE: func(*cobra.Command, []string) error {
			all, err := a.Contexts().List()
			if err != nil {
				return err
			}
			return a.Show(wire.List[cli.Named]{Items: all}, func(w io.Writer) {
				cli.Row(w, "CURRENT", "NAME", "ADDRESS", "BY")
				for _, n := range all {
					mark := ""
					if n.Current {
						mark = "*"
					}
					cli.Row(w, mark, n.Name, n.Addr, n.Auth)
				}
			})
		},
	}
}

func useCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a name the current one", Args: cobra.ExactArgs(1),
		Example: "  cloudshare context use lab-a",
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.Contexts().Use(args[0])
			if err == nil {
				a.Note("%s is the current context", args[0])
			}
			return err
		},
	}
}

func addCommand(a *cli.App) *cobra.Command {
	var by cli.Context
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Give the broker at --addr a name", Args: cobra.ExactArgs(1),
		Example: "  cloudshare context add lab-a --addr https://broker.lab-a.example:7700\n" +
			"  cloudshare context add lab-b --addr https://broker.lab-b.example:7700 --token-file alice.token\n" +
			"  cloudshare context add lab-c --addr https://192.0.2.7:7700 --pin 6f0c…e1",
		Long: `Give the broker at --addr a name, and the token in --token-file if that is named; else log in, with cloudshare login.
A broker whose certificate no known authority has signed is trusted by the authorities in --ca-file, or by the SHA-256 of
its key (--pin), which its operator tells you; a token of a broker that made its certificate itself needs neither.
Files are not copied. The first name is the current one. The broker is not asked.`,
		RunE: func(_ *cobra.Command, args []string) error {
			addr, err := resolved(a, by.Pin)
			if err != nil {
				return err
			}
			if a.TokenFile != "" {
				if _, err = a.Token(a.Addr); err != nil { // of the file
					return err
				}
			}
			if by.TokenFile, err = absolute(a.TokenFile); err != nil {
				return err
			}
			if by.CAFile, err = absolute(a.CAFile); err != nil {
				return err
			}
			err = a.Contexts().Name(args[0], addr, by)
			if err == nil {
				a.Note("%s is %s", args[0], addr)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&by.Pin, "pin", "", "the SHA-256 of the broker's key, in hexadecimal digits, to trust it by")
	return cmd
}

// resolved returns the address to keep, which has a scheme: https if the broker's key is named.
func resolved(a *cli.App, pin string) (string, error) {
	addr, err := a.Resolve(a.Addr)
	if pin != "" && !strings.Contains(a.Addr, "://") {
		addr = "https://" + a.Addr
	}
	if err == nil {
		_, err = client.New(addr)
	}
	return addr, err
}

// absolute returns a file's path for use in any folder; "" for none.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func removeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a name, and the login or token of its broker", Args: cobra.ExactArgs(1),
		Example: "  cloudshare context remove lab-a",
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.Contexts().Forget(args[0])
			if err == nil {
				a.Note("%s is forgotten", args[0])
			}
			return err
		},
	}
}
