package local

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// machineName is the only machine of this handler.
const machineName = "local"

// Config of a local handler. The zero value of a field means its default.
type Config struct {
	attempts.Keeping
	Cores  int   // 0 = every CPU that this process may use
	MemMiB int64 // 0 = the machine's memory
	// Pin gives attempts CPUs of their own also where a cgroup limits their time, and
	// keeps them to the first Cores CPUs of this process.
	Pin bool
	// Executable is run as `Executable supervise …`; "" = this very program,
	// even if its file was replaced meanwhile.
	Executable string
	// NoCgroups leaves cgroups alone: no memory limits, and trees are killed
	// by walking them.
	NoCgroups bool
	// Contain says whose tasks run in sandboxes, and Sandbox of what kind: its user 0
	// is the broker's own or, for root, nobody; the broker's folder is hidden in any case.
	Contain Whom
	Sandbox sandbox.Plan
	// Foreign is the network of other sites' tasks in sandboxes whose jobs ask for one; in
	// a sandbox the others have none.
	Foreign executor.Network
	// Scratch bounds what a task in a sandbox has on the disk in all, in bytes: 0 = a quarter of
	// what is free when it starts, less than 0 = no bound.
	Scratch int64
	// IO bounds what a task in a sandbox reads and writes of disks in a second, where cgroups of v2 can.
	IO attempts.Bandwidth

	cleanFor, strayFor, hangFor time.Duration // instead of cleanBound, strayWait and hangBound, in tests
}

// Validate names the first thing that cannot work.
func (c Config) Validate() error {
	if err := c.Keeping.Validate(); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	switch {
	case c.Cores < 0:
		return fmt.Errorf("local: cores is %d: give 1 or more, or 0 for all", c.Cores)
	case c.MemMiB < 0:
		return fmt.Errorf("local: memory is %d MiB: give 1 or more, or 0 for all", c.MemMiB)
	}
	if err := c.IO.Check(); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	if c.Pin {
		if cpus := attempts.AllowedCPUs(); c.Cores > len(cpus) {
			return fmt.Errorf("local: pin with %d cores, but this process may use only %d CPUs: lower cores or drop pin", c.Cores, len(cpus))
		}
	}
	return nil
}

// withDefaults fills in the zero fields.
func (c Config) withDefaults() (_ Config, err error) {
	if c.Keeping, err = c.Keeping.WithDefaults(); err != nil {
		return c, fmt.Errorf("local: %w", err)
	}
	if c.Cores == 0 {
		c.Cores = len(attempts.AllowedCPUs())
	}
	if c.MemMiB == 0 {
		c.MemMiB = attempts.PhysicalMiB()
	}
	c.Executable = cmp.Or(c.Executable, "/proc/self/exe")
	return c, nil
}
