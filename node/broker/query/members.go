package query

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Members returns who is in the roster, by admission.
func (rd *Reader) Members() []node.Member {
	var out []node.Member
	rd.replica.View(func(s *fsm.State) {
		for _, m := range s.Roster().Members {
			out = append(out, rd.memberOf(s, m))
		}
	})
	return out
}

// Member returns one of them.
func (rd *Reader) Member(site string) (m node.Member, err error) {
	known := false
	rd.replica.View(func(s *fsm.State) {
		var x roster.Member
		if x, known = s.Member(site); known {
			m = rd.memberOf(s, &x)
		}
	})
	if !known {
		return m, rd.missing("member " + site)
	}
	return m, nil
}

// memberOf translates a member. REQUIRES: called inside Replica.View, as all that translates.
func (rd *Reader) memberOf(s *fsm.State, m *roster.Member) node.Member {
	id := m.Key.Node()
	return node.Member{
		Site: m.Site, Key: keyText(m.Key), Node: hex.EncodeToString(id[:]), Recovery: keyText(m.Recovery),
		Generation: m.Generation, Elector: m.Elector, Deciding: m.Deciding(s.Epoch()), Banned: m.Banned,
		Since: rd.replica.WallOf(m.SinceMs, time.Time{}),
	}
}

// keyText returns a key as people compare it, "" for none.
func keyText(k signature.Key) string {
	if k == (signature.Key{}) {
		return ""
	}
	return identity.Public(k).String()
}

// Invitations returns those that are kept, the oldest first.
func (rd *Reader) Invitations() []node.Invitation {
	var out []node.Invitation
	rd.replica.View(func(s *fsm.State) {
		c := s.Roster()
		motions := byNumber(&c)
		for _, i := range c.Invitations {
			out = append(out, rd.invitationOf(s, i, motions[i.Motion]))
		}
	})
	return out
}

// Invitation returns that of a key.
func (rd *Reader) Invitation(key signature.Key) (v node.Invitation, err error) {
	known := false
	rd.replica.View(func(s *fsm.State) {
		c := s.Roster()
		n := slices.IndexFunc(c.Invitations, func(i *roster.Invitation) bool { return i.Key == key })
		if known = n >= 0; known {
			v = rd.invitationOf(s, c.Invitations[n], byNumber(&c)[c.Invitations[n].Motion])
		}
	})
	if !known {
		return v, rd.missing("the invitation")
	}
	return v, nil
}

func byNumber(c *roster.Contents) map[uint64]*roster.Motion {
	out := make(map[uint64]*roster.Motion, len(c.Motions))
	for _, m := range c.Motions {
		out[m.Number] = m
	}
	return out
}

// invitationOf translates an invitation; m is its motion, nil if that is not kept any more.
func (rd *Reader) invitationOf(s *fsm.State, i *roster.Invitation, m *roster.Motion) node.Invitation {
	v := node.Invitation{
		Site: i.Site, By: i.By, Elector: i.Elector, State: i.State.String(), Key: keyText(i.Key),
		Until: rd.replica.WallOf(i.UntilMs, time.Time{}), Claimant: keyText(i.Claimant), Motion: i.Motion,
	}
	if i.State < roster.Admitted && s.Time() >= i.UntilMs {
		v.State = node.Expired
	}
	if m != nil && m.Open(s.Time()) {
		x := node.Motion{}
		x.Yes, x.No, x.Electors = s.Tally(m)
		v.Waiting, v.Needs = missingVotes(s, m), x.Needs()
	}
	return v
}

// Motions returns those that are kept, the oldest first.
func (rd *Reader) Motions() []node.Motion {
	var out []node.Motion
	rd.replica.View(func(s *fsm.State) {
		c := s.Roster()
		claimed := claimants(&c)
		for _, m := range c.Motions {
			out = append(out, rd.motionOf(s, m, claimed))
		}
	})
	return out
}

// Motion returns that of a number.
func (rd *Reader) Motion(number uint64) (node.Motion, error) {
	all := rd.Motions()
	if n := slices.IndexFunc(all, func(m node.Motion) bool { return m.Number == number }); n >= 0 {
		return all[n], nil
	}
	return node.Motion{}, rd.missing(fmt.Sprintf("motion %d", number))
}

// claimants returns who has used which invitation.
func claimants(c *roster.Contents) map[signature.Key]signature.Key {
	out := map[signature.Key]signature.Key{}
	for _, i := range c.Invitations {
		out[i.Key] = i.Claimant
	}
	return out
}

func (rd *Reader) motionOf(s *fsm.State, m *roster.Motion, claimed map[signature.Key]signature.Key) node.Motion {
	v := node.Motion{
		Number: m.Number, Kind: m.Kind.String(), Site: m.Site, Key: keyText(m.Key), By: m.By, State: m.State.String(),
		Opened: rd.replica.WallOf(m.OpenedMs, time.Time{}), Until: rd.replica.WallOf(m.UntilMs, time.Time{}),
		Missing: missingVotes(s, m),
	}
	switch m.Kind { //nolint:exhaustive // the others have nothing of their own
	case command.MotionAdmit: // whom the electors let in: the key to compare
		v.Key = keyText(claimed[m.Key])
	case command.MotionPolicy:
		p := m.Params
		v.Params = &p
	}
	switch {
	case m.State != roster.Undecided:
		v.Ended = rd.replica.WallOf(m.EndedMs, v.Opened)
	case !m.Open(s.Time()):
		v.State = node.Expired
	}
	v.Yes, v.No, v.Electors = s.Tally(m)
	for _, vote := range m.Votes {
		v.Votes = append(v.Votes, node.Vote(vote))
	}
	return v
}

// missingVotes returns the electors that have not voted on a motion, nil if it is not open.
func missingVotes(s *fsm.State, m *roster.Motion) (missing []string) {
	if !m.Open(s.Time()) {
		return nil
	}
	for _, site := range s.Electors() {
		if !slices.ContainsFunc(m.Votes, func(v roster.Vote) bool { return v.Site == site }) {
			missing = append(missing, site)
		}
	}
	return missing
}
