// Package membercmd has the commands about who the members of the federation are and what its electors decide:
// `members`, `invite`, `motions`, `approve`, `ban` and so on. It asks a broker over HTTP.
package membercmd

import (
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands returns the commands about the members.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		a.Watchable(a.Readable(membersCommand(a))), a.Watchable(a.Readable(invitationsCommand(a))),
		a.Watchable(a.Readable(motionsCommand(a))), inviteCommand(a), revokeCommand(a), voteCommand(a, true),
		voteCommand(a, false), banCommand(a), unbanCommand(a), electorCommand(a), rebindCommand(a), forgetCommand(a),
	}
}
