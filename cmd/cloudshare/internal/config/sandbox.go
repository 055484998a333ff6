package config

import (
	"slices"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/executor/local"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// SandboxConfig says how bare commands are contained.
type SandboxConfig struct {
	Tasks     string   `koanf:"tasks" doc:"whose bare commands run in a sandbox: foreign (other sites'), all (this site's, too) or off: strangers' commands then have all rights of the broker"`
	Share     []string `koanf:"share" doc:"folders that tasks in a sandbox see writable at the same path, such as data sets and scratch"`
	Network   string   `koanf:"network" doc:"network of tasks in a sandbox: none (loopback of their own) or host (this machine's, with all that it reaches)"`
	Processes int      `koanf:"processes" doc:"processes and threads of a task in a sandbox at most; 0 = no bound but the machine's"`
}

// Words of sandbox.tasks and sandbox.network.
const (
	SandboxForeign = "foreign"
	SandboxAll     = "all"
	SandboxOff     = "off"

	networkNone = "none"
	networkHost = "host"
)

func defaultSandbox() SandboxConfig {
	return SandboxConfig{Tasks: SandboxForeign, Share: []string{}, Network: networkNone, Processes: 4096}
}

// leastProcesses are those of the process that watches a task, and a few.
const leastProcesses = 32

// checkSandbox checks how bare commands are contained.
func (c Config) checkSandbox() error {
	s := c.Sandbox
	switch {
	case !slices.Contains([]string{SandboxForeign, SandboxAll, SandboxOff}, s.Tasks):
		return cli.Usage("sandbox.tasks %q: must be foreign, all or off", s.Tasks)
	case s.Network != networkNone && s.Network != networkHost:
		return cli.Usage("sandbox.network %q: must be none or host", s.Network)
	case s.Processes < 0 || s.Processes > 0 && s.Processes < leastProcesses:
		return cli.Usage("sandbox.processes %d: must be %d or more, or 0 for no bound", s.Processes, leastProcesses)
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
		Share: c.Sandbox.Share, Hide: c.secrets(),
		HostNetwork: c.Sandbox.Network == networkHost, Processes: uint64(max(c.Sandbox.Processes, 0)),
	}
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
