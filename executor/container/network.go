package container

import "github.com/cloudshare/cloudshare/executor"

// noNetwork is the engine's name of none.
const noNetwork = "none"

// network returns what other sites' tasks have here if they ask.
func (c *Config) network() executor.Network {
	if c.Foreign == executor.NetworkOutbound || c.Network == noNetwork {
		return executor.NetworkNone
	}
	return c.Foreign
}

// networkOf returns a task's network, by the engine's name.
func (c *Config) networkOf(t executor.Task) string {
	if t.Owner != c.Site && c.network().For(t) == executor.NetworkNone {
		return noNetwork
	}
	return c.Network
}

// networkStatus says what other sites' tasks have.
func (c *Config) networkStatus() string {
	switch {
	case c.Foreign == executor.NetworkOutbound:
		return "other sites' tasks have no network: outbound is not made for containers, only none or host (sandbox.network)"
	case c.network() == executor.NetworkNone:
		return "other sites' tasks have no network"
	}
	return "other sites' tasks have the network of this site's, if their jobs ask for one"
}
