package roster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Contents is everything of a roster that is not derived, for snapshots. What the pointers refer to never changes.
type Contents struct {
	Members     []*Member
	Invitations []*Invitation
	Motions     []*Motion
	Last        uint64 // number of the last motion
	Changed     uint64 // entry
	Recount     bool
	Gossip      GossipKey
}

// Expulsion returns the motion by which a site was expelled last, nil if none is kept.
func (c *Contents) Expulsion(site string) *Motion {
	for _, m := range slices.Backward(c.Motions) {
		if m.Kind == command.MotionBan && m.Site == site && m.State == Passed {
			return m
		}
	}
	return nil
}

// Contents returns a copy that stays as it is.
func (r *Roster) Contents() Contents {
	return Contents{
		Members: slices.Clone(r.members), Invitations: slices.Clone(r.invitations), Motions: slices.Clone(r.motions),
		Last: r.last, Changed: r.changed, Recount: r.recount, Gossip: r.gossip,
	}
}

// errContents reports contents that no roster has.
var errContents = errors.New("no roster")

// Restore returns the roster of some contents, at an entry. It refuses what commands cannot have led to.
func Restore(b Bounds, c Contents, index uint64) (*Roster, error) {
	r := New(b)
	switch {
	case len(c.Members) > b.Members || len(c.Invitations) > b.Invitations || len(c.Motions) > b.Motions:
		return nil, fmt.Errorf("%w: more than its bounds", errContents)
	case len(c.Members) == 0 && (len(c.Invitations)+len(c.Motions) > 0 || c.Recount || c.Gossip != GossipKey{}):
		return nil, fmt.Errorf("%w: something without members", errContents)
	case c.Changed > index:
		return nil, fmt.Errorf("%w: changed in entry %d, after %d", errContents, c.Changed, index)
	}
	if !c.Gossip.valid() {
		return nil, fmt.Errorf("%w: gossip's key of generation %d", errContents, c.Gossip.Generation)
	}
	if err := errors.Join(r.restoreMembers(&c), r.restoreMotions(&c), r.restoreInvitations(&c)); err != nil {
		return nil, err
	}
	r.last, r.changed, r.recount, r.gossip = c.Last, c.Changed, c.Recount, c.Gossip
	return r, nil
}

func (r *Roster) restoreMembers(c *Contents) error {
	for _, m := range c.Members {
		_, known := r.keys[m.Key]
		if known || r.taken(m.Site) || !command.ValidSite(m.Site) || m.Key == (signature.Key{}) ||
			m.Banned && m.Elector {
			return fmt.Errorf("%w: member %.80q", errContents, m.Site)
		}
		r.add(*m, Moment{})
	}
	if len(r.electors) > r.bounds.MostVotes {
		return fmt.Errorf("%w: %d electors", errContents, len(r.electors))
	}
	return nil
}

func (r *Roster) restoreMotions(c *Contents) error {
	for i, m := range c.Motions {
		if !m.valid(c.Last, &r.bounds) || i > 0 && c.Motions[i-1].Number >= m.Number {
			return fmt.Errorf("%w: motion %d", errContents, m.Number)
		}
		r.motions = append(r.motions, m)
	}
	return nil
}

func (r *Roster) restoreInvitations(c *Contents) error {
	for _, i := range c.Invitations {
		if r.find(i.Key) >= 0 || !i.valid(c.Last) {
			return fmt.Errorf("%w: invitation of %.80q", errContents, i.Site)
		}
		r.invitations = append(r.invitations, i)
	}
	return nil
}

func (m *Motion) valid(last uint64, b *Bounds) bool {
	policy := m.Kind == command.MotionPolicy
	voters := map[string]bool{}
	for _, v := range m.Votes {
		if voters[v.Site] || !command.ValidSite(v.Site) {
			return false
		}
		voters[v.Site] = true
	}
	return m.Number > 0 && m.Number <= last && m.Kind >= command.MotionAdmit && m.Kind <= command.LastMotion &&
		m.State <= lastMotionState && len(m.Votes) <= b.Members && command.ValidSite(m.By) &&
		(policy || command.ValidSite(m.Site)) && (m.Params == command.Params{}) != policy
}

func (i *Invitation) valid(last uint64) bool {
	nobody := i.Claimant == signature.Key{}
	switch {
	case i.Key == signature.Key{} || !command.ValidSite(i.Site) || !command.ValidSite(i.By):
		return false
	case i.State > lastInvitationState || i.Motion == 0 || i.Motion > last:
		return false
	case i.State == Open:
		return nobody
	case i.State == Claimed || i.State == Admitted:
		return !nobody
	}
	return true
}
