package core

import (
	"cmp"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// ConfigureUsers takes the limits of users and the half-life of their use (0 = node.UserHalfLife) from the
// configuration, before Recover.
func (c *Core) ConfigureUsers(limits map[string]node.UserLimits, halfLife time.Duration) {
	c.quotas.Configure(limits)
	c.quotas.SetHalfLife(cmp.Or(halfLife, node.UserHalfLife))
}
