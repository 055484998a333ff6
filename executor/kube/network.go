package kube

import "github.com/cloudshare/cloudshare/executor"

// networkOf returns the network that a task is to have, which is a label of its pod:
// this handler makes no policies, it has no right to.
func (c *Config) networkOf(t executor.Task) executor.Network {
	if t.Owner == c.Site {
		return executor.NetworkHost
	}
	return c.Foreign.For(t)
}
