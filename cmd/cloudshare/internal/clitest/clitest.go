// Package clitest runs command lines in tests, as a user types them, and has a fake
// broker for them to ask. Only tests import it.
package clitest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands makes the commands that a test runs.
type Commands func(*cli.App) []*cobra.Command

// Run runs a command line with nothing in the environment.
func Run(t testing.TB, commands Commands, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = RunWith(t.Context(), commands, cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, args...)
	return code, out.String(), errs.String()
}

// RunWith runs a command line on streams, with nothing in the environment.
func RunWith(ctx context.Context, commands Commands, s cli.Streams, args ...string) int {
	a := &cli.App{Streams: s, Getenv: func(string) string { return "" }, Version: "test"}
	root := &cobra.Command{Use: "cloudshare"}
	a.SetUpRoot(root, commands(a)...)
	return a.Execute(ctx, root, args)
}
