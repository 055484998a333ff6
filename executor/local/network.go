package local

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// kind is what a supervisor is for.
type kind struct {
	contained bool // tasks in a sandbox
	network   bool // which has the machine's network; without a sandbox tasks have it anyway
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
	return kind{contained: true, network: given.For(t) == executor.NetworkHost}
}

// network returns what other sites' tasks have if their jobs ask for one.
func (c *containment) network() executor.Network {
	switch {
	case c.whom == ContainNobody:
		return executor.NetworkHost
	case c.foreign == executor.NetworkOutbound: // not made yet: see DESIGN.md
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
	switch {
	case c.foreign == executor.NetworkOutbound:
		return whose + "without a network: outbound is not made for bare commands, only none or host (sandbox.network)"
	case c.network() == executor.NetworkNone:
		return whose + "without a network"
	}
	return "with this machine's network if their jobs ask for one"
}

// planOf returns the plan of a kind of sandbox.
func (c *containment) planOf(k kind) sandbox.Plan {
	p := c.plan
	p.HostNetwork = k.network
	return p
}
