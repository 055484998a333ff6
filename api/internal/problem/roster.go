package problem

import (
	"net/http"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Roster is the one place where what the roster refuses becomes a status: each code is a problem of its own.
var Roster = []struct {
	Code        command.Code
	status      int
	name, title string
	retryAfter  int // seconds
}{
	{command.NotMember, http.StatusForbidden, "not-a-member", "The site is no member", 0},
	{command.Banned, http.StatusForbidden, "banned", "The site was expelled", 0},
	{command.NotElector, http.StatusForbidden, "not-an-elector", "The site has no vote", 0},
	{command.NeedsMotion, http.StatusForbidden, "needs-motion", "The electors decide on that", 0},
	{command.BadSignature, http.StatusForbidden, "bad-signature", "A signature is not by the right key", 0},
	{command.UnknownSite, http.StatusNotFound, "not-found", "No such member", 0},
	{command.UnknownMotion, http.StatusNotFound, "not-found", "No such motion", 0},
	{command.UnknownInvitation, http.StatusNotFound, "not-found", "No such invitation", 0},
	{command.NameTaken, http.StatusConflict, "name-taken", "The name is a member's", 0},
	{command.KeyTaken, http.StatusConflict, "key-taken", "The key is a member's", 0},
	{command.OldKey, http.StatusConflict, "old-key", "The key was replaced meanwhile", 0},
	{command.NotOwner, http.StatusConflict, "site-present", "The site is here", 0},
	{command.NoRecovery, http.StatusConflict, "no-recovery-key", "The site has no recovery key", 0},
	{command.RecoveryStands, http.StatusConflict, "recovery-key-stands", "The site has a recovery key", 0},
	{command.InvitationUsed, http.StatusConflict, "invitation-used", "The invitation was used", 0},
	{command.MotionClosed, http.StatusConflict, "motion-closed", "The motion is closed", 0},
	{command.LastElector, http.StatusConflict, "last-elector", "Nobody would be left to decide", 0},
	{command.AlreadySo, http.StatusConflict, "already-so", "It is so already", 0},
	{command.OutOfRange, http.StatusUnprocessableEntity, "out-of-range", "Something is out of its range", 0},
	{command.TooManyMotions, http.StatusTooManyRequests, "too-many-motions", "Too many motions or invitations are open", 60},
	{command.Busy, http.StatusServiceUnavailable, "busy", "Too much is decided at once", 1},
}

// rosterProblem words what the roster refuses. A code that nobody expects is in no table.
func rosterProblem(e *node.RosterError) *Problem {
	for _, row := range Roster {
		if row.Code == e.Code {
			p := New(row.status, row.name, row.title, OneLine(e.Error()))
			p.RetryAfter = row.retryAfter
			return p
		}
	}
	return New(http.StatusConflict, "refused", "The federation refuses that", OneLine(e.Error()))
}
