package local

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor/books"
)

// machineName is the only machine of this handler.
const machineName = "local"

// Config of a local handler. The zero value of a field means its default.
type Config struct {
	Dir    string // absolute or relative, made if missing; one broker at a time
	Site   string
	Cores  int   // 0 = every CPU that this process may use
	MemMiB int64 // 0 = the machine's memory
	Pin    bool  // give each attempt CPUs of its own
	// Grace is the time between TERM and KILL; 0 = 1 s.
	Grace time.Duration
	// MaxLogBytes bounds each of stdout and stderr of an attempt; 0 = 64 MiB.
	MaxLogBytes int64
	Retention   books.Retention
	// Executable is run as `Executable supervise …`; "" = this very program,
	// even if its file was replaced meanwhile.
	Executable string
	// NoCgroups leaves cgroups alone: no memory limits, and trees are killed
	// by walking them.
	NoCgroups bool
	// Logger hears what the site should mend. The zero value is silent.
	Logger zerolog.Logger
}

// Validate names the first thing that cannot work.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return errors.New("local: dir is empty: name a directory for attempts")
	case c.Site == "":
		return errors.New("local: site is empty")
	case c.Cores < 0:
		return fmt.Errorf("local: cores is %d: give 1 or more, or 0 for all", c.Cores)
	case c.MemMiB < 0:
		return fmt.Errorf("local: memory is %d MiB: give 1 or more, or 0 for all", c.MemMiB)
	case c.Grace < 0:
		return fmt.Errorf("local: grace is %s: it cannot be negative", c.Grace)
	case c.MaxLogBytes < 0:
		return fmt.Errorf("local: max log bytes is %d: it cannot be negative", c.MaxLogBytes)
	case c.Retention.Age < 0 || c.Retention.Bytes < 0 || c.Retention.Count < 0:
		return errors.New("local: retention cannot be negative")
	}
	if c.Pin {
		if cpus := books.AllowedCPUs(); c.Cores > len(cpus) {
			return fmt.Errorf("local: pin with %d cores, but this process may use only %d CPUs: lower cores or drop pin", c.Cores, len(cpus))
		}
	}
	return nil
}

// withDefaults fills in the zero fields.
func (c Config) withDefaults() (Config, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("local: find %s: %w", c.Dir, err)
	}
	c.Dir = dir
	if c.Cores == 0 {
		c.Cores = len(books.AllowedCPUs())
	}
	if c.MemMiB == 0 {
		c.MemMiB = books.PhysicalMiB()
	}
	c.Grace = cmp.Or(c.Grace, time.Second)
	c.MaxLogBytes = cmp.Or(c.MaxLogBytes, 64<<20)
	c.Retention = c.Retention.WithDefaults()
	if c.Executable == "" {
		c.Executable = "/proc/self/exe"
	}
	return c, nil
}
