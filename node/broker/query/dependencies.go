package query

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// Dependencies returns what a job of this site waits for, and the first most of those that wait for it. They are known
// to the owner's broker alone: of another site's job there are none.
func (rd *Reader) Dependencies(ctx context.Context, id command.JobID, most int) (d node.Dependencies, err error) {
	if id.Site != rd.site {
		return d, nil
	}
	err = rd.query(ctx, func(c *core.Core) { d = c.Dependencies(id.Num, most) })
	return d, err
}
