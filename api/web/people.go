package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/audit"
)

// People says what is known of a site's users. Its errors are for Config.Problem.
type People interface {
	// Used returns what the ended attempts of a user's jobs have used since a time, in core-hours, at whichever site
	// they ran, as this broker's archive has them.
	Used(ctx context.Context, user string, since time.Time) (coreHours float64, err error)
	// Use returns what a user uses of the quotas, and may use.
	Use(ctx context.Context, user string) (node.UserUse, error)
	// Done returns the newest entries of the record of a user's requests, at most so many.
	Done(user string, most int) ([]audit.Entry, error)
}

// meView is what a user is told of oneself.
type meView struct {
	Jobs    tally
	Whole   bool // the counts are of all jobs that are kept
	Used    float64
	Unused  string      // why it is not known what was used, "" = it is
	Days    int         // that Used is of
	Quotas  *quotasView // nil: who has no user has none
	Tokens  []access.Token
	Entries []audit.Entry
	Untold  string // why the record is not shown, "" = it is
}

// tally counts the jobs of a user.
type tally struct{ Waiting, Running, Ended int }

// All is how many jobs were counted.
func (t tally) All() int { return t.Waiting + t.Running + t.Ended }

const (
	// tallyPages bounds the pages of so many jobs that one count looks at.
	tallyPages, tallyJobs = 20, 1000
	// usedDays is of how many days the use is told, shownEntries how many of the record's.
	usedDays, shownEntries = 30, 20
)

// me is the visitor's own page.
func (p *Pages) me(r *http.Request, _ func(string) string) (view, error) {
	who, v := p.visitor(r), meView{Days: usedDays}
	counts, whole, err := p.count(r.Context(), who.User)
	if err != nil {
		return view{}, err
	}
	if c := counts[who.User]; c != nil {
		v.Jobs = *c
	}
	v.Whole = whole
	v.Used, err = p.cfg.People.Used(r.Context(), who.User, p.cfg.Now().AddDate(0, 0, -usedDays))
	v.Unused = p.words(err)
	if who.User != "" {
		v.Quotas = p.quotas(r.Context(), who.User)
		v.Entries, err = p.cfg.People.Done(who.User, shownEntries)
		v.Untold = p.words(err)
	}
	for _, t := range p.cfg.Tokens.List() {
		if who.User != "" && t.User == who.User && !t.Expired(p.cfg.Now()) {
			v.Tokens = append(v.Tokens, t)
		}
	}
	return view{template: "me", data: &v}, nil
}

// words returns why something is not shown, "" = it is.
func (p *Pages) words(err error) string {
	if err == nil {
		return ""
	}
	what := p.cfg.Problem(err)
	return what.Title + ": " + what.Detail
}

// usersView is whom the site's operator has to do with.
type usersView struct {
	Rows  []userRow
	Whole bool
}

type userRow struct {
	Name   string // "" = the jobs and tokens of no user
	Jobs   tally
	Tokens int    // that hold
	Roles  string // the greatest of them
}

// people lists the users of the site, for its operator.
func (p *Pages) people(r *http.Request, _ func(string) string) (view, error) {
	if !p.visitor(r).Operates() {
		return view{}, errNotOperator
	}
	counts, whole, err := p.count(r.Context(), "")
	if err != nil {
		return view{}, err
	}
	rows := map[string]*userRow{}
	row := func(name string) *userRow {
		if rows[name] == nil {
			rows[name] = &userRow{Name: name}
		}
		return rows[name]
	}
	for name, c := range counts {
		row(name).Jobs = *c
	}
	for _, t := range p.cfg.Tokens.List() {
		if u := row(t.User); !t.Expired(p.cfg.Now()) {
			u.Tokens++
			if t.Role.Covers(access.Role(cmp.Or(u.Roles, string(t.Role)))) {
				u.Roles = string(t.Role)
			}
		}
	}
	v := usersView{Whole: whole}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		v.Rows = append(v.Rows, *rows[name])
	}
	return view{template: "users", data: &v}, nil
}

// errNotOperator is for the page that package api lets operators alone ask for.
var errNotOperator = errors.New("this page is the site's operator's")

// count counts the newest jobs of this site by user: of one, or ("") of all; whole says that these are all.
func (p *Pages) count(ctx context.Context, user string) (counts map[string]*tally, whole bool, err error) {
	counts = map[string]*tally{}
	q := node.JobQuery{Site: p.cfg.Source.Site(), User: user, Limit: tallyJobs}
	until := time.Now().Add(searchTime)
	for range tallyPages {
		page, err := p.cfg.Source.Jobs(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Items {
			j := &page.Items[i]
			if counts[j.User] == nil {
				counts[j.User] = &tally{}
			}
			counts[j.User].add(j.State)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return counts, true, nil
		}
		if time.Now().After(until) {
			break
		}
	}
	return counts, false, nil
}

func (t *tally) add(state string) {
	switch state {
	case fsm.Queued.String(), "withdrawn":
		t.Waiting++
	case fsm.Running.String():
		t.Running++
	default:
		t.Ended++
	}
}
