package quotas

import "github.com/cloudshare/cloudshare/node"

// Whose limits hold for a user, the first there are: its own, set by command; its own in the configuration; those of
// everybody, set by command; those of everybody in the configuration. So what the operator says of one user outweighs
// what is said of all, and a command outweighs the file until it is cleared.

// every are the limits of users that have none of their own.
type every struct {
	command       *node.UserLimits // nil: none were set
	configuration *node.UserLimits // nil: there are none
}

// limits returns those that hold, and where they are from.
func (e *every) limits() (l node.UserLimits, from string) {
	switch {
	case e.command != nil:
		return *e.command, node.LimitsByCommand
	case e.configuration != nil:
		return *e.configuration, node.LimitsByConfiguration
	}
	return node.UserLimits{}, node.LimitsOfNobody
}

// set changes those set by command.
func (e *every) set(c *node.UserLimitsChange) {
	if c.Clear {
		e.command = nil
	}
	if *c != (node.UserLimitsChange{Clear: c.Clear}) {
		base, _ := e.limits()
		l := c.Apply(base)
		e.command = &l
	}
}

// Configure takes limits from the configuration, by user; it is called before Recover. Those of node.EveryUser are
// everybody's.
func (b *Book) Configure(limits map[string]node.UserLimits) {
	for name, l := range limits {
		if name == node.EveryUser {
			b.every.configuration = &l
		} else {
			b.user(name).configured = &l
		}
	}
}

// from says where a user's limits are from.
func (u *user) from() string {
	switch {
	case u.limits != nil:
		return node.LimitsByCommand
	case u.configured != nil:
		return node.LimitsByConfiguration
	}
	return node.LimitsOfEverybody
}
