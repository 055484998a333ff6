// Package jobcmd has the users' commands about jobs, their tasks and their output:
// `submit`, `run`, `jobs`, `logs`, `why` and so on. It asks a broker over HTTP and
// opens nothing of a broker's.
package jobcmd

import (
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands returns the commands about jobs.
func Commands(a *cli.App) []*cobra.Command {
	commands := []*cobra.Command{
		submitCommand(a), runCommand(a), logsCommand(a), cancelCommand(a), waitCommand(a),
		rerunCommand(a), fetchCommand(a), holdCommand(a), releaseCommand(a), setCommand(a),
	}
	shows := []*cobra.Command{jobsCommand(a), jobCommand(a), tasksCommand(a), whyCommand(a), usageCommand(a)}
	for _, show := range shows {
		commands = append(commands, a.Watchable(a.Readable(show)))
	}
	return commands
}
