package api

import (
	"context"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
	"github.com/cloudshare/cloudshare/node/audit"
)

// people tells the pages what is known of a site's users.
type people struct {
	site    string
	owners  source.Owners
	users   func(context.Context) ([]node.UserUse, error)
	reports *reports
	record  *auditing
}

var _ web.People = (*people)(nil)

// Used implements web.People.
func (p *people) Used(ctx context.Context, user string, since time.Time) (float64, error) {
	if p.reports.archive == nil {
		return 0, archiveProblem(archive.ErrOff)
	}
	done, err := p.reports.enter()
	if err != nil {
		return 0, err
	}
	defer done()
	q := archive.Query{Since: since, Visible: func(id command.JobID) bool {
		return id.Site == p.site && p.owners.UserOf(id.Num) == user
	}}
	report, err := p.reports.archive.Report(ctx, q, "site")
	if err != nil {
		return 0, archiveProblem(err)
	}
	return coreHours(report.Total.Own + report.Total.Used), nil
}

// Use implements web.People.
func (p *people) Use(ctx context.Context, user string) (node.UserUse, error) {
	list, err := p.users(ctx)
	if err != nil {
		return node.UserUse{}, err
	}
	return useOf(list, user), nil
}

// Done implements web.People.
func (p *people) Done(user string, most int) ([]audit.Entry, error) {
	list, err := p.record.entries(audit.Query{Who: user, Limit: most})
	if err != nil {
		return nil, err
	}
	out := list[:0]
	for i := range list {
		if e := &list[i]; e.User == user { // others' requests may be about what is called like that
			e.Action = problem.OneLine(e.Action)
			out = append(out, *e)
		}
	}
	return out, nil
}
