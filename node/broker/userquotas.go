package broker

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// Users returns what the users of this site use of their quotas, by name, and the limits of node.EveryUser.
func (b *Broker) Users(ctx context.Context) (list []node.UserUse, err error) {
	err = b.query(ctx, func(c *core.Core) { list = c.Users() })
	return list, err
}

// SetUserLimits changes the limits of a user of this site, or those of node.EveryUser. They are durable when it
// returns.
func (b *Broker) SetUserLimits(ctx context.Context, user string, change node.UserLimitsChange) error {
	done := make(chan error, 1)
	if !b.post(core.UserLimitsEvent{User: user, Change: change, Done: func(err error) { done <- err }}) {
		return fmt.Errorf("set quotas of user %s: %w", user, node.ErrStopping)
	}
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-b.ctx.Done():
		err = node.ErrStopping
	}
	if err != nil {
		return fmt.Errorf("set quotas of user %s: %w", user, err)
	}
	return nil
}
