package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// change makes a handler of a form of the members' page. What it leaves is that page again.
func (p *Pages) change(do func(r *http.Request, param func(string) string) error) Handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		err := p.cfg.Source.Current()
		if err == nil {
			err = do(r, param)
		}
		if err != nil {
			return p.refuse(w, r, err)
		}
		guard(w.Header())
		http.Redirect(w, r, "/members", http.StatusSeeOther)
		return nil
	}
}

// voting votes for this site on the motion of the path.
func (p *Pages) voting(yes bool) Handler {
	return p.change(func(r *http.Request, param func(string) string) error {
		_, err := p.cfg.Roster.Vote(r.Context(), param("number"), yes)
		return err
	})
}

// revoke ends the invitations of a site.
func (p *Pages) revoke(r *http.Request, param func(string) string) error {
	_, err := p.cfg.Roster.Revoke(r.Context(), param("site"))
	return err
}

// proposable is what the page's form proposes. The command line has the rest, which takes a key or a policy.
var proposable = map[string]command.MotionKind{
	"ban": command.MotionBan, "unban": command.MotionUnban, "elector": command.MotionElector,
	"no-elector": command.MotionNoElector,
}

// propose makes the motion of the form.
func (p *Pages) propose(r *http.Request, _ func(string) string) error {
	what, ok := proposable[r.PostFormValue("what")]
	if !ok {
		return &formError{"what", "must be ban, unban, elector or no-elector"}
	}
	site := r.PostFormValue("site")
	if !command.ValidSite(site) {
		return &formError{"site", "must be a member's name"}
	}
	_, err := p.cfg.Roster.Propose(r.Context(), &command.Motion{What: what, Site: site})
	return err
}

// formError says what of a form cannot be used.
type formError struct{ field, why string }

// Error implements error.
func (e *formError) Error() string { return e.field + ": " + e.why }

// invitedView is what is shown once: the text that lets a site in.
type invitedView struct {
	node.Invited
	Waits string
}

// invite invites the site of the form. Its answer is the page that shows the text: it is kept nowhere to go on to.
func (p *Pages) invite(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	site, within, err := invitation(r.PostFormValue)
	if err == nil {
		err = p.cfg.Source.Current()
	}
	if err != nil {
		return p.refuse(w, r, err)
	}
	v, err := p.cfg.Roster.Invite(r.Context(), site, r.PostFormValue("vote") != "", within)
	if err != nil {
		return p.refuse(w, r, err)
	}
	p.show(w, r, view{"invited", &invitedView{v, waiting(v.Waiting, v.Needs)}, http.StatusCreated}, p.since())
	return nil
}

// invitation reads the form of an invitation.
func invitation(form func(string) string) (site string, within time.Duration, err error) {
	hours, err := strconv.Atoi(form("hours"))
	site = form("site")
	switch {
	case !command.ValidSite(site):
		return "", 0, &formError{"site", "must be a lower-case DNS label, e.g. lab-2"}
	case err != nil || hours < 1 || hours > limits.MostHours:
		return "", 0, &formError{"hours", "must be from 1 to " + strconv.Itoa(limits.MostHours)}
	}
	return site, time.Duration(hours) * time.Hour, nil
}
