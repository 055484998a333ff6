package config

import (
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/local"
)

// ForLocal returns what the handler of bare commands is told.
func (c Config) ForLocal() local.Config {
	return local.Config{
		Keeping: c.keeping("local"), Cores: c.localCores(), MemMiB: c.MemoryMiB(), Pin: c.Pin,
		Contain: c.contained(), Sandbox: c.sandboxPlan(), Foreign: c.foreignNetwork(),
		Scratch: c.scratch(), IO: c.bandwidth(),
	}
}

// keeping returns what each handler is told of its attempts; it has a folder of its own.
func (c Config) keeping(folder string) attempts.Keeping {
	return attempts.Keeping{
		Dir: filepath.Join(c.DataDir, folder), Site: c.Site, Grace: c.Timing().Grace,
		MaxLogBytes: sizeOf(c.TaskLogs.Each),
	}
}
