package jobcmd

import (
	"context"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// runCLI runs a command line of this package's commands.
func runCLI(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, Commands, stdin, args...)
}

// runWith runs a command line on streams.
func runWith(ctx context.Context, s cli.Streams, args ...string) int {
	return clitest.RunWith(ctx, Commands, s, args...)
}
