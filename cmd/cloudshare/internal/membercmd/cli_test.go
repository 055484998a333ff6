package membercmd

import (
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// runCLI runs a command line of this package's commands.
func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, Commands, "", args...)
}
