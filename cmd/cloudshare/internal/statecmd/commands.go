// Package statecmd works on the data of stopped brokers and on a federation's tree:
// `state`, `recover` and `zk`. It starts no broker.
package statecmd

import (
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands returns the commands about the data of stopped brokers.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{stateCommand(a), recoverCommand(a), zkCommand(a)}
}
