// Package sitecmd has the commands about the federation and its sites: `sites`,
// `ledger`, `queue`, `policy`, `drain`, `report` and so on. It asks a broker over HTTP
// and opens nothing of a broker's.
package sitecmd

import (
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands returns the commands about the federation and its sites.
func Commands(a *cli.App) []*cobra.Command {
	commands := []*cobra.Command{
		policyCommand(a), drainCommand(a), resumeCommand(a), leaveCommand(a), eventsCommand(a), reportCommand(a),
		exportCommand(a), auditCommand(a),
	}
	for _, show := range []*cobra.Command{
		sitesCommand(a), ledgerCommand(a), queueCommand(a), quotaCommand(a),
		statusCommand(a),
	} {
		commands = append(commands, a.Watchable(a.Readable(show)))
	}
	return commands
}
