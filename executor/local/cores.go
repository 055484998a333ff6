package local

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// cores says how tasks are held to the cores that they asked for: by cpu.max of their
// cgroup where that can be written, else by pinning them to CPUs.
type cores struct {
	cpus   []int  // that tasks are pinned to, nil = none is
	noPins string // why cpus is nil though nothing else holds; "" otherwise
}

// findCores probes what this machine offers besides the groups.
func findCores(c Config, g *cgroups) cores {
	if g.cpu && !c.Pin && (c.Contain == ContainNobody || g.lendsV2()) {
		return cores{}
	}
	cpus, err := attempts.PinnableCPUs()
	if err != nil {
		return cores{noPins: err.Error()}
	}
	return cores{cpus: inTurn(c, cpus)}
}

// inTurn puts CPUs into the order in which they are given out. A site that pins by
// choice keeps to its first ones, since the last ones are for containers. Else several
// brokers of one machine should not all begin with the same one.
func inTurn(c Config, cpus []int) []int {
	if c.Pin {
		return cpus[:min(c.Cores, len(cpus))]
	}
	h := fnv.New32a()
	h.Write([]byte(c.Dir))
	first := int(h.Sum32() % uint32(len(cpus)))
	return slices.Concat(cpus[first:], cpus[:first])
}

// renew looks again at which CPUs there are, since a cpuset may have been changed, and reports whether tasks
// are pinned to them.
func (c *cores) renew(cfg Config) bool {
	if c.cpus == nil {
		return false
	}
	cpus, err := attempts.PinnableCPUs()
	if err == nil {
		c.cpus = inTurn(cfg, cpus)
	}
	return err == nil
}

// status says in one line what holds tasks to as many cores as a site lends, or why nothing does.
func (c *cores) status(lent int, g *cgroups) string {
	n := len(c.cpus)
	switch {
	case g.cpu && n > 0:
		return "cores are limited by cpu.max, and tasks pinned"
	case g.cpu:
		return "cores are limited by cpu.max"
	case n > 0 && n < lent:
		return fmt.Sprintf("tasks are pinned to their cores, which are more than the %d CPUs that this process may use", n)
	case n > 0:
		return "tasks are pinned to their cores"
	}
	return "cores are not limited: " + c.noPins + "; " + g.whyCPU
}
