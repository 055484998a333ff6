package web

import (
	"context"
	"net/url"
	"slices"

	"github.com/cloudshare/cloudshare/node"
)

// ownFirst begins the first page of all jobs with the visitor's own, and returns which ones of the others follow. A
// selection is one list, and so is what everybody may see who has no token.
func (p *Pages) ownFirst(ctx context.Context, who visitor, v *jobsView) (keep func(*node.Job) bool, err error) {
	here := p.cfg.Source.Site()
	all := func(*node.Job) bool { return true }
	if v.Filtered || !who.Asked || who.Operates() && who.User == "" {
		return all, nil
	}
	q, more := node.JobQuery{Site: here, Limit: ownJobs}, url.Values{"site": {here}}
	v.Title = "Other sites' jobs"
	keep = func(j *node.Job) bool { return j.ID.Site != here }
	if who.Operates() {
		q.User, more = who.User, url.Values{"user": {who.User}}
		v.Title, keep = "Others' jobs", func(j *node.Job) bool { return j.ID.Site != here || j.User != who.User }
	}
	if !v.First {
		return keep, nil
	}
	if v.OwnTitle = "Your jobs"; who.User == "" {
		v.OwnTitle = "Jobs of " + here + " that are no user's"
	}
	own, next, err := p.search(ctx, q)
	if err != nil {
		return nil, err
	}
	v.Own = rowsOf(own, p.cfg.Now())
	if next != "" {
		v.OwnMore = "/jobs?" + more.Encode()
	}
	return keep, nil
}

// users names those who have tokens, by name.
func (p *Pages) users() (names []string) {
	if p.cfg.Tokens == nil {
		return nil
	}
	for _, t := range p.cfg.Tokens.List() {
		if t.User != "" {
			names = append(names, t.User)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
