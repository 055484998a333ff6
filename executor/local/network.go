package local

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// kind is what a supervisor is for.
type kind struct {
	contained bool             // tasks in a sandbox
	network   executor.Network // which has it; without a sandbox tasks have the machine's anyway
}

// kindFor returns the kind of supervisor that a task needs.
func (h *Handler) kindFor(t executor.Task) kind {
	if !h.contains(t) {
		return kind{}
	}
	given := executor.NetworkHost // to this site's own
	if t.Owner != h.cfg.Site {
		given = h.contain.network()
	}
	return kind{contained: true, network: given.For(t)}
}

// network returns what other sites' tasks have if their jobs ask for one.
func (c *containment) network() executor.Network {
	switch {
	case c.whom == ContainNobody:
		return executor.NetworkHost
	case c.foreign == executor.NetworkOutbound && c.noOutbound != nil:
		return executor.NetworkNone
	}
	return c.foreign
}

// networkStatus says what that means, for people.
func (c *containment) networkStatus() string {
	whose := ""
	if c.whom == ContainAll { // this site's own have one if their jobs ask for it
		whose = "other sites' "
	}
	switch c.network() {
	case executor.NetworkOutbound:
		return whose + "with the world, but no private address and none of this machine's, if their jobs ask for a network"
	case executor.NetworkHost:
		return "with this machine's network if their jobs ask for one"
	case executor.NetworkNone:
	}
	if c.noOutbound != nil {
		return whose + "without a network: outbound does not hold here: " + c.noOutbound.Error()
	}
	return whose + "without a network"
}

// planOf returns the plan of a kind of sandbox.
func (c *containment) planOf(k kind) sandbox.Plan {
	p := c.plan
	p.HostNetwork, p.Outbound = k.network == executor.NetworkHost, k.network == executor.NetworkOutbound
	return p
}

// networkOf returns the network that a plan says.
func networkOf(p sandbox.Plan) executor.Network {
	switch {
	case p.HostNetwork:
		return executor.NetworkHost
	case p.Outbound:
		return executor.NetworkOutbound
	}
	return executor.NetworkNone
}
