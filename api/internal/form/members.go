package form

import (
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// Member returns the form of a member.
func Member(m node.Member) wire.Member {
	return wire.Member{
		Site: m.Site, Key: m.Key, Node: m.Node, Recovery: m.Recovery, Generation: m.Generation, Elector: m.Elector,
		Deciding: m.Deciding, Banned: m.Banned, Since: Moment(m.Since),
	}
}

// Invitation returns the form of an invitation.
func Invitation(v node.Invitation) wire.Invitation {
	return wire.Invitation{
		Site: v.Site, By: v.By, Vote: v.Elector, State: v.State, Until: Moment(v.Until), Key: v.Key,
		Claimant: v.Claimant, Motion: v.Motion, Waiting: full(v.Waiting), Needs: v.Needs,
	}
}

// Motion returns the form of a motion.
func Motion(m node.Motion) wire.Motion {
	out := wire.Motion{
		Number: m.Number, What: m.Kind, Site: m.Site, Key: m.Key, By: m.By, State: m.State, OpenedAt: Moment(m.Opened),
		Until: Moment(m.Until), EndedAt: Moment(m.Ended), Votes: make([]wire.Vote, 0, len(m.Votes)), Yes: m.Yes,
		No: m.No, Electors: m.Electors, Missing: full(m.Missing),
	}
	for _, v := range m.Votes {
		out.Votes = append(out.Votes, wire.Vote(v))
	}
	if m.Params != nil {
		p := Policy(*m.Params, 0)
		out.Params = &p
	}
	if m.State == "open" {
		out.Needs = m.Needs()
	}
	return out
}
