package jobcmd

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// inParts calls do for the jobs, mostTargets at a time, until it fails.
func inParts(jobs []string, do func(some []string) error) error {
	for len(jobs) > 0 {
		now := min(len(jobs), mostTargets)
		if err := do(jobs[:now]); err != nil {
			return err
		}
		jobs = jobs[now:]
	}
	return nil
}

// refusals are the jobs of a request with which was not done what it asked for.
type refusals struct {
	app   *cli.App
	count int
	first *client.Problem
}

// add says why nothing was done with a job; a nil problem is none.
func (r *refusals) add(job string, p *client.Problem) {
	if p == nil {
		return
	}
	r.count++
	r.app.Note("%s: %s", job, cli.Explain(p))
	r.first = cmp.Or(r.first, p)
}

// err returns nil, or with the exit code of the first problem how many of all were not done.
func (r *refusals) err(all int, done string) error {
	if r.first == nil {
		return nil
	}
	return cli.WithExit(cli.CodeOf(r.first), fmt.Errorf("%d of %d were not %s", r.count, all, done))
}
