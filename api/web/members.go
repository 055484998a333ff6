package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Roster is who the members are, and what their electors decide. The errors of what changes it are for Config.Problem.
type Roster interface {
	Members() []node.Member
	Invitations() []node.Invitation
	Motions() []node.Motion
	// Invite invites a site, and returns the text that lets it in, once, within a time.
	Invite(ctx context.Context, site string, elector bool, within time.Duration) (node.Invited, error)
	// Revoke ends the invitations of a site that still let somebody in.
	Revoke(ctx context.Context, site string) ([]node.Invitation, error)
	// Propose makes a motion with this site's vote for it; Vote votes on the one with a number.
	Propose(ctx context.Context, c *command.Motion) (node.Motion, error)
	Vote(ctx context.Context, motion string, yes bool) (node.Motion, error)
}

// membersView is who belongs to the federation, and what is pending.
type membersView struct {
	Members     []memberRow
	Invitations []invitationRow
	Open        []motionRow
	Decided     []motionRow // the latest first
	MoreDecided int         // older ones that are kept, and not shown
	// Deciding are the electors that count now, and Majority how many of them decide.
	Deciding []string
	Majority int
	// Votes says that this site has a vote.
	Votes  bool
	Key    string // of this site
	Limits inviteLimits
}

type memberRow struct {
	node.Member
	State string
	Here  bool
}

type invitationRow struct {
	node.Invitation
	Revocable bool
	Waits     string // what it waits for, "" = nothing
}

type motionRow struct {
	node.Motion
	Waits   string
	Changes []string // of a policy
	Mine    string   // what this site has voted, "" = it has not
}

// inviteLimits bounds what the form of an invitation takes.
type inviteLimits struct{ Hours, MostHours int }

// limits are the hours that an invitation stands, if nobody says, and at most.
var limits = inviteLimits{24, command.MaxInvitationMs / 3_600_000}

// mostDecided bounds the decided motions that the page shows.
const mostDecided = 20

func (p *Pages) members(_ *http.Request, _ func(string) string) (view, error) {
	if err := p.cfg.Source.Current(); err != nil {
		return view{}, err
	}
	here := p.cfg.Source.Site()
	v := membersView{Limits: limits}
	for _, m := range p.cfg.Roster.Members() {
		row := memberRow{m, "member", m.Site == here}
		if m.Banned {
			row.State = "expelled"
		}
		if m.Deciding {
			v.Deciding = append(v.Deciding, m.Site)
		}
		if row.Here {
			v.Votes, v.Key = m.Deciding, m.Key
		}
		v.Members = append(v.Members, row)
	}
	v.Majority = len(v.Deciding)/2 + 1
	for _, i := range p.cfg.Roster.Invitations() {
		open := i.State == "open" || i.State == "claimed"
		v.Invitations = append(v.Invitations, invitationRow{i, open && (v.Votes || i.By == here), invitationWaits(&i)})
	}
	p.motions(&v, here)
	return view{template: "members", data: &v}, nil
}

// motions fills in what is to be decided, and what was.
func (p *Pages) motions(v *membersView, here string) {
	all, now := p.cfg.Roster.Motions(), p.cfg.Source.Params()
	for i := range all {
		row := motionRow{Motion: all[i], Changes: policyChanges(now, all[i].Params)}
		for _, vote := range row.Votes {
			if vote.Site == here {
				row.Mine = map[bool]string{true: "approved", false: "rejected"}[vote.Yes]
			}
		}
		if row.State == "open" {
			row.Waits = waiting(row.Missing, row.Needs())
			v.Open = append(v.Open, row)
			continue
		}
		v.Decided = append(v.Decided, row)
	}
	slices.Reverse(v.Decided)
	if n := len(v.Decided); n > mostDecided {
		v.Decided, v.MoreDecided = v.Decided[:mostDecided], n-mostDecided
	}
}

// invitationWaits says what an invitation waits for, "" if for nothing.
func invitationWaits(v *node.Invitation) string {
	switch {
	case v.State != "open" && v.State != "claimed":
		return ""
	case v.Needs > 0 && v.State == "open":
		return waiting(v.Waiting, v.Needs) + ", and its use"
	case v.Needs > 0:
		return waiting(v.Waiting, v.Needs)
	}
	return "its use"
}

// waiting names those of whom so many must still agree.
func waiting(missing []string, needs int) string {
	switch {
	case needs == 0:
		return ""
	case len(missing) == 0:
		return "an elector that is away"
	case len(missing) <= needs:
		return strings.Join(missing, " and ")
	case needs == 1:
		return "one of " + strings.Join(missing, ", ")
	}
	return fmt.Sprintf("%d of %s", needs, strings.Join(missing, ", "))
}
