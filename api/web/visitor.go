package web

import (
	"net/http"

	"github.com/cloudshare/cloudshare/node/access"
)

// visitor is who looks at a page, and what the page offers: what the role may not do is not shown, and package api
// refuses it all the same.
type visitor struct {
	User string // of this site, "" = the token names none
	Name string // of the token, "" = it is not known
	Role access.Role
	// Guest says that the page is shown to who has no session: it gets no changes.
	// In says that there is one, to be ended.
	Guest, In bool
	Asked     bool   // for a token
	Key       string // that the forms of this session carry, "" = none is asked for
}

// visitor says who asks for a page.
func (p *Pages) visitor(r *http.Request) visitor {
	if p.cfg.Sessions == nil || !p.cfg.Sessions.On() {
		return visitor{Role: access.Operator}
	}
	token, err := p.cfg.Sessions.Holder(r)
	if err != nil {
		return visitor{Guest: true}
	}
	key := p.cfg.Sessions.FormKey(r)
	return visitor{User: token.User, Name: token.Name, Role: token.Role, Asked: true, In: key != "", Key: key}
}

// Changes reports whether the visitor may submit jobs and end own ones.
func (v visitor) Changes() bool { return v.Role.Covers(access.User) }

// Operates reports whether the visitor may do what the site's operator does.
func (v visitor) Operates() bool { return v.Role.Covers(access.Operator) }

// Called is what the page calls the visitor: the user, else the name of the token.
func (v visitor) Called() string {
	if v.User != "" {
		return v.User
	}
	return v.Name
}

// tabs are those of the navigation that the visitor has.
func (v visitor) tabs() (out []tab) {
	for _, t := range tabs {
		if t.needs == "" || v.Asked && v.Role.Covers(t.needs) {
			out = append(out, t)
		}
	}
	return out
}

// posted guards what changes something: it takes forms of this broker's pages that were drawn for the same session.
func (p *Pages) posted(h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		switch {
		case p.foreign(r):
			p.Refuse(w, r, Problem{http.StatusForbidden, "Not from this page", "a web page of another origin sent this; nothing was changed"})
		case p.cfg.Sessions != nil && !p.cfg.Sessions.Genuine(r, r.PostFormValue(fieldKey)):
			p.Refuse(w, r, Problem{http.StatusForbidden, "Not from this page", "the form was not made for this session; nothing was changed: " +
				"load the page again, and send its form"})
		default:
			return h(w, r, param)
		}
		return nil
	}
}

// fieldKey names the field of a form that has the session's key.
const fieldKey = "key"
