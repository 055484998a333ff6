package config

import (
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// ContainerConfig is of jobs with an image. A machine's cores are given either to
// them or to bare commands: no core is in both.
type ContainerConfig struct {
	Engine       string   `koanf:"engine" doc:"socket of a Docker or Podman engine, such as unix:///var/run/docker.sock; empty = no containers"`
	Cores        int      `koanf:"cores" doc:"cores for containers, at the expense of bare commands; 0 = all, if there are no bare commands"`
	Memory       string   `koanf:"memory" doc:"memory for containers, such as 8Gi; 0 = all"`
	Images       []string `koanf:"images" doc:"images that may run, by patterns of names with their registry, such as docker.io/library/*; empty = all"`
	Pull         string   `koanf:"pull" doc:"fetch images: if-missing or never"`
	Network      string   `koanf:"network" doc:"the engine's name of the network of this site's own containers, none for none; empty = the engine's default; of other sites' see sandbox.network"`
	ReadOnly     bool     `koanf:"read_only" doc:"images' files cannot be changed; /tmp is in memory"`
	User         string   `koanf:"user" doc:"USER or USER:GROUP of tasks in containers; empty = the image's own"`
	Pids         int      `koanf:"pids" doc:"processes and threads of one container"`
	CapAdd       []string `koanf:"cap_add" doc:"Linux capabilities to leave to containers; all others are dropped"`
	Mounts       []string `koanf:"mounts" doc:"folders of this machine for every container, as /from:/to or /from:/to:ro"`
	CgroupParent string   `koanf:"cgroup_parent" doc:"the engine's name of the cgroup above the containers'; empty = its default"`
}

func defaultContainer() ContainerConfig {
	return ContainerConfig{Memory: "0", Pull: "if-missing", Pids: 4096, Images: []string{}, CapAdd: []string{}, Mounts: []string{}}
}

// checkContainer checks the division of the machine, and what containers may do.
func (c Config) checkContainer() error {
	all := len(attempts.AllowedCPUs())
	switch k := c.Container; {
	case k.Engine == "" && c.Kube.Cluster == "" && !c.Commands:
		return cli.Usage("commands is false, container.engine and kube.cluster are empty: nothing could run; name an engine or a cluster, or drop commands")
	case k.Engine == "":
		return nil
	case k.Cores < 0:
		return cli.Usage("container.cores %d: must not be negative", k.Cores)
	case c.Commands && k.Cores == 0:
		return cli.Usage("container.cores is 0: say how many of the cores are for containers, or commands: false for all of them")
	case c.Commands && c.Cores == 0 && k.Cores >= all:
		return cli.Usage("container.cores %d: of %d cores none would be left for bare commands: lower it, or say commands: false", k.Cores, all)
	}
	if _, err := jobspec.ParseMemory(c.Container.Memory); err != nil {
		return cli.Usage("container.memory %q: %w; 0 for all", c.Container.Memory, err)
	}
	if err := c.ForContainer("").Validate(); err != nil {
		return cli.Usage("%s", strings.TrimPrefix(err.Error(), "container: "))
	}
	return nil
}

// localCores returns left for bare commands.
func (c Config) localCores() int {
	if c.Container.Engine == "" || c.Cores != 0 {
		return c.Cores
	}
	return len(attempts.AllowedCPUs()) - c.Container.Cores
}

// ForContainer returns what the container handler is told.
func (c Config) ForContainer(federation string) container.Config {
	k := c.Container
	mem, _ := jobspec.ParseMemory(k.Memory) // checkContainer has seen it
	cpus := attempts.AllowedCPUs()
	out := container.Config{
		Keeping: c.keeping("container"), Engine: k.Engine, Federation: federation,
		Cores: k.Cores, MemMiB: mem, Pids: int64(k.Pids), Scratch: c.scratch(), IO: c.bandwidth(),
		Images:  container.Images{Allow: k.Images, Pull: container.Pull(k.Pull)},
		Network: k.Network, Foreign: c.foreignNetwork(),
		ReadOnly: k.ReadOnly, User: k.User, CapAdd: k.CapAdd, Mounts: k.Mounts,
		CgroupParent: k.CgroupParent,
	}
	if out.Cores == 0 {
		out.Cores = len(cpus)
	}
	if c.Pin && out.Cores <= len(cpus) { // the last ones: bare commands take the first
		out.CPUs = cpus[len(cpus)-out.Cores:]
	}
	return out
}
