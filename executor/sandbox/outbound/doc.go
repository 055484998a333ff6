// Package outbound is the network of sandboxes whose tasks may reach the world, but not the machine: a network stack
// in a process of its own, outside the sandbox (step 6 of a job's way). executor/local starts it beside the sandbox,
// whose first process makes a device in its own network namespace and hands it over ([sandbox.GiveDevice]).
//
// Each connection of a task ends in the stack, which asks for the address ([public]) and makes one of its own to it. So
// it needs no right on the machine, and no rule of a firewall. It must know nothing of handlers and brokers.
package outbound
