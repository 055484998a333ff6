package roster

import (
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// InvitationState is what became of an invitation.
type InvitationState uint8

// The states. An open one may have expired: that is told by its UntilMs.
const (
	Open                InvitationState = iota
	Claimed                             // somebody has used it; the electors have not agreed yet
	Admitted                            // its site is a member
	Revoked                             // by whom it is of, or with whose ban it ended
	Refused                             // the electors did not agree
	lastInvitationState = Refused
)

var invitationStates = [...]string{"open", "claimed", "admitted", "revoked", "refused"}

// String returns the state's name in the API.
func (s InvitationState) String() string {
	if int(s) < len(invitationStates) {
		return invitationStates[s]
	}
	return "unknown"
}

// Invitation lets one site in, once.
type Invitation struct {
	Key     signature.Key // its secret half is in the text that was handed on
	Site    string        // who is invited
	By      string
	Elector bool
	UntilMs int64  // log time
	Motion  uint64 // what the electors decide on
	State   InvitationState
	// Claimant is the key that has used it; zero while nobody has.
	Claimant signature.Key
}

// open reports whether the invitation can still let somebody in.
func (i *Invitation) open(nowMs int64) bool {
	return (i.State == Open || i.State == Claimed) && nowMs < i.UntilMs
}

// Invite makes an invitation, and the motion for it, whose number it returns.
func (r *Roster) Invite(by string, c *command.Invite, at Moment) (uint64, command.Code) {
	known := r.find(c.Key)
	switch {
	case !r.spend():
		return 0, command.Busy
	case !r.isMember(by):
		return 0, command.NotMember
	case known >= 0 && r.invitations[known].By == by && r.invitations[known].Site == c.Site:
		return r.invitations[known].Motion, command.OK
	case known >= 0:
		return 0, command.KeyTaken
	case r.taken(c.Site):
		return 0, command.NameTaken
	case len(r.members) >= r.bounds.Members:
		return 0, command.OutOfRange
	case r.openOf(by, at) >= r.bounds.ByInviter || !r.makeRoom(at) || !r.makeRoomForMotion(at):
		return 0, command.TooManyMotions
	}
	r.last++
	r.invitations = append(r.invitations, &Invitation{
		Key: c.Key, Site: strings.Clone(c.Site), By: strings.Clone(by), Elector: c.Elector,
		UntilMs: at.Ms + c.ForMs, Motion: r.last,
	})
	r.motions = append(r.motions, &Motion{
		Number: r.last, Kind: command.MotionAdmit, Site: strings.Clone(c.Site), By: strings.Clone(by), Key: c.Key,
		OpenedMs: at.Ms, UntilMs: at.Ms + c.ForMs,
	})
	r.cast(len(r.motions)-1, by, true, at)
	return r.last, command.OK
}

// Revoke ends an invitation. It may have admitted already: then nothing changes.
func (r *Roster) Revoke(by string, key signature.Key, at Moment) command.Code {
	n := r.find(key)
	switch {
	case !r.spend():
		return command.Busy
	case n < 0:
		return command.UnknownInvitation
	case r.invitations[n].By != by && !r.decides(by, at):
		return command.NotElector
	case r.invitations[n].State == Admitted:
		return command.InvitationUsed
	case r.invitations[n].State < Admitted:
		r.endInvitation(n, Revoked)
		r.closeMotion(r.invitations[n].Motion, Withdrawn, at)
	}
	return command.OK
}

// Admit lets a site in, or notes who has used the invitation until the electors agree.
func (r *Roster) Admit(c *command.Admit, federation [16]byte, at Moment) command.Code {
	n := r.find(c.Invitation)
	m, _ := r.Member(c.Site)
	switch {
	case !r.spend():
		return command.Busy
	case m.Key == c.Key && !m.Banned:
		return command.OK // it is in, and asks again; the invitation may be forgotten
	case m.Banned:
		return command.Banned // whoever is let in is told who the members are
	case n < 0:
		return command.UnknownInvitation
	}
	if code := r.claimable(r.invitations[n], c, at); code != command.OK {
		return code
	}
	if r.invitations[n].State == Open {
		if !r.check(2) {
			return command.Busy
		}
		signed := c.Signed(federation)
		if !c.Invitation.Verify(c.ByInvitation[:], command.SignedAdmission, signed...) ||
			!c.Key.Verify(c.ByKey[:], command.SignedAdmission, signed...) {
			return command.BadSignature
		}
		i := *r.invitations[n]
		i.State, i.Claimant = Claimed, c.Key
		r.invitations[n] = &i
	}
	if r.invitations[n].State == Claimed {
		if m := r.motion(r.invitations[n].Motion); m == nil || m.State != Passed {
			return command.Pending
		}
		return r.enter(n, at)
	}
	return command.OK
}

// claimable refuses an Admit by what is known without its signatures. OK for the same one again.
func (r *Roster) claimable(i *Invitation, c *command.Admit, at Moment) command.Code {
	again := i.Claimant == c.Key && i.Site == c.Site
	switch {
	case i.State == Revoked:
		return command.InvitationRevoked
	case i.State == Refused:
		return command.MotionRefused
	case i.State != Open && !again:
		return command.InvitationUsed
	case i.State == Admitted:
		return command.OK
	case at.Ms >= i.UntilMs: // nobody votes on it any more, either
		return command.InvitationExpired
	case i.State == Claimed:
		return command.OK
	case i.Site != c.Site:
		return command.InvitationOther
	case r.taken(c.Site):
		return command.NameTaken
	}
	if _, known := r.keys[c.Key]; known {
		return command.KeyTaken
	}
	return command.OK
}

// enter makes the claimant of an invitation a member.
func (r *Roster) enter(n int, at Moment) command.Code {
	i := r.invitations[n]
	_, known := r.keys[i.Claimant]
	switch {
	case r.taken(i.Site):
		return command.NameTaken
	case known:
		return command.KeyTaken
	case len(r.members) >= r.bounds.Members:
		return command.OutOfRange
	}
	r.endInvitation(n, Admitted)
	r.add(Member{
		Site: i.Site, Key: i.Claimant, SinceMs: at.Ms,
		Elector: i.Elector && len(r.electors) < r.bounds.Electors,
	}, at)
	return command.OK
}

// taken reports whether a name is a member's.
func (r *Roster) taken(site string) bool { _, ok := r.sites[site]; return ok }

// isMember reports whether a site is a member that takes part.
func (r *Roster) isMember(site string) bool {
	m, ok := r.Member(site)
	return ok && !m.Banned
}

// find returns the place of an invitation, or -1.
func (r *Roster) find(key signature.Key) int {
	return slices.IndexFunc(r.invitations, func(i *Invitation) bool { return i.Key == key })
}

// endInvitation sets what became of an invitation.
func (r *Roster) endInvitation(n int, s InvitationState) {
	i := *r.invitations[n]
	i.State = s
	r.invitations[n] = &i
}

// openOf returns how many invitations of a site can still let somebody in.
func (r *Roster) openOf(site string, at Moment) (n int) {
	for _, i := range r.invitations {
		if i.By == site && i.open(at.Ms) {
			n++
		}
	}
	return n
}

// makeRoom has room for one more invitation: the oldest that is over is forgotten.
func (r *Roster) makeRoom(at Moment) bool {
	if len(r.invitations) < r.bounds.Invitations {
		return true
	}
	n := slices.IndexFunc(r.invitations, func(i *Invitation) bool { return !i.open(at.Ms) })
	if n >= 0 {
		r.invitations = slices.Delete(r.invitations, n, n+1)
	}
	return n >= 0
}
