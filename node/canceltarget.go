package node

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// CancelTarget names what to cancel: a job, or some of its tasks.
type CancelTarget struct {
	Job   command.JobID
	Tasks jobspec.Indices // empty: the whole job; at most MaxCancelTasks
}

// placeKey carries the site at whose broker a request was asked.
type placeKey struct{}

// AskedAt is for requests that another site's broker was asked and passed on: what is
// cancelled by them says so.
func AskedAt(ctx context.Context, site string) context.Context {
	return context.WithValue(ctx, placeKey{}, site)
}

// AskedFrom returns that site; empty: this broker's own was asked.
func AskedFrom(ctx context.Context) string {
	site, _ := ctx.Value(placeKey{}).(string)
	return site
}
