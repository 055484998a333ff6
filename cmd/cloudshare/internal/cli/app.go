// Package cli has what all commands share: the streams, the client of the API, the
// exit codes, the forms of output, --watch and --max-staleness. It imports none of
// the other packages of the command.
package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
)

// DefaultAddr is where the first broker of a machine listens.
const DefaultAddr = "http://127.0.0.1:7700"

// Streams of the process; tests give others. Data goes to Out, notes to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// App is what every command shares.
type App struct {
	Streams
	// Getenv reads the environment; nil: there is nothing in it.
	Getenv func(string) string
	// Addr is the flag --addr.
	Addr string
	// Context is the flag --context.
	Context string
	// TokenFile is the flag --token-file.
	TokenFile string
	// CAFile is the flag --ca-file.
	CAFile string
	// Plain is the flag --plain.
	Plain bool
	// Format is the flag -o.
	Format string
	// Version is the program's.
	Version string
	// Quiet suppresses notes.
	Quiet bool
	// Over reports whether what is watched will not change any more.
	Over bool
	// Outcome is how the watched job ended, if it ended badly.
	Outcome error

	watcher *client.Client // of --watch, else nil
	fresh   freshness      // of the state that is read
}

func (a *App) getenv(name string) string {
	if a.Getenv == nil {
		return ""
	}
	return a.Getenv(name)
}

// Client returns a client of the broker at --addr.
func (a *App) Client() (*client.Client, error) {
	if a.watcher != nil {
		return a.watcher, nil
	}
	return a.PlainClient()
}

// PlainClient returns a client of its own, which never waits for a change.
func (a *App) PlainClient() (*client.Client, error) {
	c, err := a.ClientOf(a.Addr)
	if err != nil {
		return nil, err
	}
	return a.fresh.apply(c)
}

// Note writes a line to Err, for people: it is no data.
func (a *App) Note(format string, args ...any) {
	if !a.Quiet {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// ShowCommand returns a command without arguments that shows one answer.
func ShowCommand[T any](a *App, use, short, example string, ask func(cmd *cobra.Command, c *client.Client) (T, error),
	table func(io.Writer, T),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			v, err := ask(cmd, c)
			if err != nil {
				return err
			}
			return a.Show(v, func(w io.Writer) { table(w, v) })
		},
	}
}
