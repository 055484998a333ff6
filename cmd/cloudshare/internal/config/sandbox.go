package config

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/local"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// SandboxConfig says how bare commands are contained.
type SandboxConfig struct {
	Tasks     string   `koanf:"tasks" doc:"whose bare commands run in a sandbox: foreign (other sites'), all (this site's, too) or off: strangers' commands then have all rights of the broker"`
	Share     []string `koanf:"share" doc:"folders that tasks in a sandbox see writable at the same path, such as data sets and scratch"`
	Network   string   `koanf:"network" doc:"network of other sites' tasks whose jobs ask for one, in sandboxes, containers and pods: none, outbound (out to the world, not to this machine) or host (what this site's own have); the others have none"`
	Processes int      `koanf:"processes" doc:"processes and threads of a task in a sandbox at most; 0 = no bound but the machine's"`
	Scratch   string   `koanf:"scratch" doc:"what a task in a sandbox, or another site's container, may have on the disk in all, such as 20Gi; empty = a quarter of what is free when it starts, 0 = no bound"`
	IO        string   `koanf:"io" doc:"what a task in a sandbox, and another site's container, may read and write of each disk in a second, in the words of io.max, such as rbps=100Mi wbps=50Mi riops=2000 wiops=1000; sandboxes need cgroup v2 for it; empty = no bound"`
}

// Words of sandbox.tasks and sandbox.network.
const (
	SandboxForeign = "foreign"
	SandboxAll     = "all"
	SandboxOff     = "off"
)

func defaultSandbox() SandboxConfig {
	return SandboxConfig{
		Tasks: SandboxForeign, Share: []string{}, Network: executor.NetworkNone.String(), Processes: 4096,
	}
}

// leastProcesses are those of the process that watches a task, and a few.
const leastProcesses = 32

// checkSandbox checks how bare commands are contained.
func (c Config) checkSandbox() error {
	s := c.Sandbox
	_, isNetwork := executor.ParseNetwork(s.Network)
	switch {
	case !slices.Contains([]string{SandboxForeign, SandboxAll, SandboxOff}, s.Tasks):
		return cli.Usage("sandbox.tasks %q: must be foreign, all or off", s.Tasks)
	case !isNetwork:
		return cli.Usage("sandbox.network %q: must be none, outbound or host", s.Network)
	case s.Processes < 0 || s.Processes > 0 && s.Processes < leastProcesses:
		return cli.Usage("sandbox.processes %d: must be %d or more, or 0 for no bound", s.Processes, leastProcesses)
	}
	if _, err := jobspec.ParseMemory(s.Scratch); err != nil && s.Scratch != "" {
		return cli.Usage("sandbox.scratch %q: %w; 0 for no bound, empty for a quarter of what is free", s.Scratch, err)
	}
	if _, err := parseIO(s.IO); err != nil {
		return cli.Usage("sandbox.io: %w", err)
	}
	plan := c.sandboxPlan()
	plan.UID, plan.GID = 1, 1 // the handler knows the true ones
	if err := plan.Validate(); err != nil {
		return cli.Usage("sandbox.share: %v", err)
	}
	return nil
}

// sandboxPlan returns what tasks in a sandbox see and may.
func (c Config) sandboxPlan() sandbox.Plan {
	return sandbox.Plan{
		Share: c.Sandbox.Share, Hide: c.secrets(), Processes: uint64(max(c.Sandbox.Processes, 0)),
	}
}

// foreignNetwork is what other sites' tasks have, by all handlers.
func (c Config) foreignNetwork() executor.Network {
	n, _ := executor.ParseNetwork(c.Sandbox.Network) // checkSandbox has seen it
	return n
}

// scratch returns the bound of what a task in a sandbox has on the disk, as the handler takes it.
func (c Config) scratch() int64 {
	if c.Sandbox.Scratch == "" {
		return 0
	}
	return cmp.Or(sizeOf(c.Sandbox.Scratch), -1)
}

// contained says whose tasks run in a sandbox.
func (c Config) contained() local.Whom {
	switch c.Sandbox.Tasks {
	case SandboxAll:
		return local.ContainAll
	case SandboxOff:
		return local.ContainNobody
	}
	return local.ContainForeign
}
