package local

import (
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
)

// usage counts what is taken of the machine. Not safe for concurrent use.
type usage struct {
	cores, freeCores int
	mem, freeMem     int64
	// cpus not given to a pinned attempt; nil without pinning. After a restart
	// with fewer cores than attempts the free counts are negative.
	cpus []int
}

func newUsage(c Config) usage {
	u := usage{cores: c.Cores, freeCores: c.Cores, mem: c.MemMiB, freeMem: c.MemMiB}
	if c.Pin {
		u.cpus = append([]int{}, allowedCPUs()[:c.Cores]...)
	}
	return u
}

// coresOf counts cores whole.
func coresOf(r executor.Resources) int {
	milli := max(r.MilliCPU, 1)
	return int((milli-1)/1000 + 1)
}

// fit says why a task can never run here.
func (u *usage) fit(t executor.Task) error {
	switch {
	case t.Image != "":
		return fmt.Errorf("%w: image %q needs a container runtime, this handler runs commands", executor.ErrUnfit, t.Image)
	case len(t.Command) == 0:
		return fmt.Errorf("%w: no command", executor.ErrUnfit)
	case t.Need.GPU > 0:
		return fmt.Errorf("%w: %d GPUs wanted, none here", executor.ErrUnfit, t.Need.GPU)
	case t.Need.MilliCPU > int64(u.cores)*1000:
		return fmt.Errorf("%w: %d milli-cores wanted, the machine lends %d cores", executor.ErrUnfit, t.Need.MilliCPU, u.cores)
	case t.Need.MemMiB < 0 || t.Need.MemMiB > u.mem:
		return fmt.Errorf("%w: %d MiB wanted, the machine lends %d", executor.ErrUnfit, t.Need.MemMiB, u.mem)
	case t.Machine != "" && t.Machine != machineName:
		return fmt.Errorf("%w: no machine %q here, only %q", executor.ErrUnfit, t.Machine, machineName)
	}
	return nil
}

// take reserves room for w.
func (u *usage) take(w *work) error {
	w.cores, w.mem = coresOf(w.task.Need), w.task.Need.MemMiB
	if w.cores > u.freeCores || w.mem > u.freeMem || (u.cpus != nil && w.cores > len(u.cpus)) {
		return fmt.Errorf("%w: %d cores and %d MiB wanted, %d and %d free", executor.ErrBusy, w.cores, w.mem, u.freeCores, u.freeMem)
	}
	u.hold(w)
	if u.cpus != nil {
		w.cpus = append([]int{}, u.cpus[:w.cores]...)
		u.cpus = append([]int{}, u.cpus[w.cores:]...)
	}
	return nil
}

func (u *usage) hold(w *work) {
	u.freeCores -= w.cores
	u.freeMem -= w.mem
}

// adopt counts an attempt that runs already, whether it fits or not.
func (u *usage) adopt(w *work, cpus []int) {
	w.cores, w.mem = coresOf(w.task.Need), w.task.Need.MemMiB
	u.hold(w)
	if u.cpus == nil {
		return
	}
	for _, c := range cpus {
		for i, free := range u.cpus {
			if free == c {
				u.cpus = append(u.cpus[:i], u.cpus[i+1:]...)
				w.cpus = append(w.cpus, c)
				break
			}
		}
	}
}

func (u *usage) release(w *work) {
	u.freeCores += w.cores
	u.freeMem += w.mem
	if u.cpus != nil {
		u.cpus = append(u.cpus, w.cpus...)
	}
}
