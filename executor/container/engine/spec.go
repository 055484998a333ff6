package engine

import "strconv"

// Spec is a container to make; the fields are the engine's own.
type Spec struct {
	Image           string
	Entrypoint, Cmd []string
	Env             []string     // NAME=VALUE, before the image's
	Healthcheck     *Healthcheck `json:",omitempty"` // nil = the image's own
	User            string       `json:",omitempty"` // "" = the image's own
	WorkingDir      string       `json:",omitempty"` // likewise
	Labels          map[string]string
	NetworkDisabled bool   `json:",omitempty"`
	StopSignal      string `json:",omitempty"` // by which the engine stops it; "" = the image's, or TERM
	HostConfig      HostConfig
}

// Healthcheck is a command that the engine runs in the container every now and
// then.
type Healthcheck struct{ Test []string } // {"NONE"} = none

// HostConfig is what a container may use of its machine.
type HostConfig struct {
	Mounts      []Mount
	NetworkMode string `json:",omitempty"`
	CpusetCpus  string `json:",omitempty"`
	NanoCpus    int64  `json:",omitempty"` // billionths of a CPU
	Memory      int64  `json:",omitempty"` // bytes
	MemorySwap  int64  `json:",omitempty"` // bytes, memory included
	PidsLimit   int64  `json:",omitempty"`

	BlkioDeviceReadBps   []ThrottleDevice `json:",omitempty"`
	BlkioDeviceWriteBps  []ThrottleDevice `json:",omitempty"`
	BlkioDeviceReadIOps  []ThrottleDevice `json:",omitempty"`
	BlkioDeviceWriteIOps []ThrottleDevice `json:",omitempty"`

	CapDrop        []string `json:",omitempty"`
	CapAdd         []string `json:",omitempty"`
	SecurityOpt    []string `json:",omitempty"`
	ReadonlyRootfs bool
	CgroupnsMode   string            `json:",omitempty"`
	CgroupParent   string            `json:",omitempty"`
	Tmpfs          map[string]string `json:",omitempty"`
	LogConfig      LogConfig
}

// IsBounded reports whether it bounds what a container reads or writes of any disk.
func (c *HostConfig) IsBounded() bool {
	return len(c.BlkioDeviceReadBps)+len(c.BlkioDeviceWriteBps) > 0 ||
		len(c.BlkioDeviceReadIOps)+len(c.BlkioDeviceWriteIOps) > 0
}

// ThrottleDevice bounds what a container has of a block device in a second.
type ThrottleDevice struct {
	Path string // of its file on the engine's machine
	Rate int64  // bytes or operations
}

// Mount is a folder or file of the machine in the container.
type Mount struct {
	Type           string // bind
	Source, Target string
	ReadOnly       bool
}

// LogConfig names the driver of a container's own output.
type LogConfig struct{ Type string }

// CPUSet writes CPU numbers as the engine reads them.
func CPUSet(cpus []int) string {
	var b []byte
	for i, n := range cpus {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}
