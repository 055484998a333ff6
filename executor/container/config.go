package container

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// ErrNotStatic says that the program cannot run inside images.
var ErrNotStatic = errors.New("not a static program")

// machineName is the only machine of this handler.
const machineName = "container"

// Pull says when images are fetched.
type Pull string

// The ways to get an image.
const (
	PullIfMissing Pull = "if-missing"
	PullNever     Pull = "never"
)

// Config of a container handler. The zero value of a field means its default.
type Config struct {
	attempts.Keeping        // the engine must see Dir under the same path
	Engine           string // unix:///path/of/its.sock
	// Federation is a label of every container, for people.
	Federation string

	Cores  int   // given to containers
	MemMiB int64 // 0 = the engine's machine's memory
	// CPUs, if any, are those of the Cores: each attempt gets its own. Without,
	// the engine holds it to the time of its cores.
	CPUs []int
	Pids int64 // processes and threads of one container; 0 = 4096
	// Scratch bounds what a container of another site has on the disk in all, in bytes: 0 = a quarter of what is free
	// when it starts, less = no bound.
	Scratch int64
	// IO bounds what a container of another site reads and writes of disks in a second.
	IO attempts.Bandwidth

	Images Images
	// Network of containers, by the engine's name: "none" is none, "" the
	// engine's default. Other sites' tasks have it if Foreign says host.
	Network string
	// Foreign is the network of other sites' tasks whose jobs ask for one; the others
	// have none.
	Foreign  executor.Network
	ReadOnly bool     // the image's files cannot be changed; /tmp is memory
	User     string   // "" = the image's own; else USER or USER:GROUP
	CapAdd   []string // capabilities to keep; all others are dropped
	// Mounts are folders of the machine for every container, as FROM:TO or
	// FROM:TO:ro.
	Mounts       []string
	CgroupParent string

	// PullSilence is how long the engine may tell nothing new of an image that it
	// fetches; 0 = 10 m. Then another site may try.
	PullSilence time.Duration

	// Executable is the program that is every container's first process; "" =
	// this very program. It must be static.
	Executable string
}

// Images says which images may run here.
type Images struct {
	Allow attempts.Images
	Pull  Pull // "" = if-missing
}

// Validate names the first thing that cannot work.
func (c Config) Validate() error {
	if err := c.Keeping.Validate(); err != nil {
		return fmt.Errorf("container: %w", err)
	}
	switch {
	case c.Cores < 1:
		return fmt.Errorf("container: cores is %d: give 1 or more", c.Cores)
	case c.MemMiB < 0:
		return fmt.Errorf("container: memory is %d MiB: give 1 or more, or 0 for all", c.MemMiB)
	case len(c.CPUs) > 0 && len(c.CPUs) < c.Cores:
		return fmt.Errorf("container: pin with %d cores, but only %d CPUs: lower cores or drop pin", c.Cores, len(c.CPUs))
	case c.Pids < 0 || c.Pids > 0 && c.Pids < minPids:
		return fmt.Errorf("container: pids is %d: give %d or more, or 0 for the default", c.Pids, minPids)
	case c.PullSilence < 0:
		return fmt.Errorf("container: pull silence is %s: it cannot be negative", c.PullSilence)
	case !slices.Contains([]Pull{"", PullIfMissing, PullNever}, c.Images.Pull):
		return fmt.Errorf("container: pull %q: must be %s or %s", c.Images.Pull, PullIfMissing, PullNever)
	}
	if err := c.IO.Check(); err != nil {
		return fmt.Errorf("container: %w", err)
	}
	if err := c.Images.Allow.Validate(); err != nil {
		return fmt.Errorf("container: %w", err)
	}
	if _, err := engine.New(c.Engine); err != nil {
		return fmt.Errorf("container: %w", err)
	}
	_, err := c.mounts()
	return err
}

const (
	// ownPids are the threads of a container's first process.
	ownPids = 16
	minPids = 2 * ownPids
	// ownMiB is what that process may need besides the task.
	ownMiB = 16
)

// mounts reads Mounts.
func (c Config) mounts() ([]engine.Mount, error) {
	var out []engine.Mount
	for _, text := range c.Mounts {
		part := strings.Split(text, ":")
		ro := len(part) == 3 && part[2] == "ro"
		if len(part) != 2 && !ro || !filepath.IsAbs(part[0]) || !filepath.IsAbs(part[1]) {
			return nil, fmt.Errorf("container: mount %q: must be /from:/to or /from:/to:ro", text)
		}
		out = append(out, engine.Mount{Type: "bind", Source: part[0], Target: part[1], ReadOnly: ro})
	}
	return out, nil
}

// withDefaults fills in the zero fields.
func (c Config) withDefaults() (_ Config, err error) {
	if c.Keeping, err = c.Keeping.WithDefaults(); err != nil {
		return c, fmt.Errorf("container: %w", err)
	}
	c.Pids = cmp.Or(c.Pids, 4096)
	c.Images.Pull = cmp.Or(c.Images.Pull, PullIfMissing)
	c.PullSilence = cmp.Or(c.PullSilence, 10*time.Minute)
	c.Executable = cmp.Or(c.Executable, "/proc/self/exe")
	return c, nil
}
