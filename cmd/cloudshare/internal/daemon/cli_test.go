package daemon

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// commands are those of this package.
func commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{Command(a), DebugCommand(a)}
}

// runCLI runs a command line of this package's commands.
func runCLI(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, commands, stdin, args...)
}
